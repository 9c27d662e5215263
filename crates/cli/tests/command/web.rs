//! `weft web`.

use crate::{run, weft};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A server that ends with the test.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn new(folder: &str) -> Self {
        let words = ["web", "--port", "0", "--dir", folder];
        let mut child = weft(&words).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let port = line.trim().strip_prefix("http://localhost:").and_then(|rest| rest.strip_suffix('/'));
        Self { child, port: port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no address: {line}")) }
    }

    /// The head and the body of an answer.
    fn ask(&self, request: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        write!(stream, "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_string(), body.to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn pages_of_a_folder_are_served_to_this_machine_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("pages");
    std::fs::create_dir(&pages).expect("room");
    std::fs::write(pages.join("index.html"), "<p>hello").expect("room");
    std::fs::write(pages.join("a.wasm"), "wasm").expect("room");
    std::fs::write(folder.path().join("secret"), "secret").expect("room");
    let pages = pages.to_str().expect("UTF-8");
    let server = Server::new(pages);
    let (head, body) = server.ask("GET /", "localhost:1");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/html; charset=utf-8"), "{head}");
    assert_eq!(body, "<p>hello");
    let (head, body) = server.ask("HEAD /a.wasm?x=1", "127.0.0.1");
    assert!(head.contains("application/wasm") && head.contains("content-length: 4") && body.is_empty(), "{head}");
    for (request, host, status) in [
        ("GET /../secret", "localhost", "404"),
        ("GET /%2e%2e/secret", "localhost", "404"),
        ("GET /none.js", "localhost", "404"),
        ("POST /", "localhost", "405"),
        ("GET /", "pages.example.org", "403"),
    ] {
        let (head, body) = server.ask(request, host);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")) && !body.contains("secret"), "{request}: {head}");
    }
    let port = server.port.to_string();
    let err = run(&["web", "--port", &port, "--dir", pages]).failed(1);
    assert!(err.contains(&format!("port {port} of 127.0.0.1 is in use; choose another with --port")), "{err}");
}

#[test]
fn a_folder_without_pages_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let err = run(&["web", "--dir", folder.path().to_str().expect("UTF-8")]).failed(2);
    assert!(err.contains("there is no index.html in this folder"), "{err}");
}
