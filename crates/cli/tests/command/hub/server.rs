//! A hub on loopback: the list of a repository's files, redirects to a second port, ranges, and the
//! faults that a test plants.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request: the path, and some headers.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub range: Option<String>,
    pub token: Option<String>,
}

/// An answer, whose body may be cut or stall.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The connection ends after so many bytes of the body.
    pub cut: Option<usize>,
    /// The connection stalls for so long after half of the body.
    pub stall: Duration,
}

impl Answer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let headers = vec![("Content-Length".to_string(), body.len().to_string())];
        Self { status, headers, body, cut: None, stall: Duration::ZERO }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_string(), value.to_string()));
        self
    }

    fn send(&self, mut stream: TcpStream) -> std::io::Result<()> {
        write!(stream, "HTTP/1.1 {} X\r\nConnection: close\r\n", self.status)?;
        for (name, value) in &self.headers {
            write!(stream, "{name}: {value}\r\n")?;
        }
        write!(stream, "\r\n")?;
        let body = &self.body[..self.cut.unwrap_or(self.body.len()).min(self.body.len())];
        let (first, second) = body.split_at(if self.stall.is_zero() { body.len() } else { body.len() / 2 });
        stream.write_all(first)?;
        stream.flush()?;
        std::thread::sleep(self.stall);
        stream.write_all(second)
    }
}

/// What a test plants: sees each request and the number of equal ones before it.
type Plan = Box<dyn Fn(&Request, usize) -> Option<Answer> + Send>;

struct State {
    files: BTreeMap<String, Vec<u8>>,
    repository: String,
    commit: String,
    content: String,
    log: Vec<Request>,
    plan: Plan,
}

/// A running hub with the repository `me/M-GGUF`.
#[derive(Clone)]
pub struct Server {
    pub address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub fn new(files: &[(&str, &[u8])]) -> Self {
        let (hub, content) = (listener(), listener());
        let state = State {
            files: files.iter().map(|(name, bytes)| (name.to_string(), bytes.to_vec())).collect(),
            repository: "me/M-GGUF".to_string(),
            commit: "1".repeat(40),
            content: address(&content),
            log: vec![],
            plan: Box::new(|_, _| None),
        };
        let server = Self { address: address(&hub), state: Arc::new(Mutex::new(state)) };
        for listener in [hub, content] {
            let server = server.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let server = server.clone();
                    // A client that goes away is no failure of the server.
                    std::thread::spawn(move || drop(server.serve(stream)));
                }
            });
        }
        server
    }

    /// Plants faults in place of answers.
    pub fn plan(&self, plan: impl Fn(&Request, usize) -> Option<Answer> + Send + 'static) {
        self.state.lock().unwrap().plan = Box::new(plan);
    }

    /// Renames the repository.
    pub fn rename(&self, repository: &str) {
        self.state.lock().unwrap().repository = repository.to_string();
    }

    /// Replaces a file in a new commit.
    pub fn commit(&self, digit: &str, file: &str, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap();
        state.commit = digit.repeat(40);
        state.files.insert(file.to_string(), bytes.to_vec());
    }

    /// The requests so far whose path contains this text.
    pub fn asked(&self, text: &str) -> Vec<Request> {
        self.state.lock().unwrap().log.iter().filter(|request| request.path.contains(text)).cloned().collect()
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let path = line.split(' ').nth(1).unwrap_or_default().to_string();
        let mut request = Request { path, range: None, token: None };
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_default();
            match name.to_lowercase().as_str() {
                "range" => request.range = Some(value.trim().to_string()),
                "authorization" => request.token = Some(value.trim().to_string()),
                _ => {}
            }
        }
        let answer = {
            let mut state = self.state.lock().unwrap();
            let before = state.log.iter().filter(|other| other.path == request.path).count();
            state.log.push(request.clone());
            (state.plan)(&request, before).unwrap_or_else(|| state.answer(&request))
        };
        answer.send(stream)
    }
}

impl State {
    fn answer(&self, request: &Request) -> Answer {
        let path = request.path.as_str();
        let repository = self.repository.as_str();
        if path == format!("/api/models/{repository}/revision/main?blobs=true") {
            return Answer::new(200, self.listing().to_string());
        }
        let resolve = format!("/{repository}/resolve/{}", self.commit);
        if let Some(file) = path.strip_prefix(&resolve) {
            let place = format!("{}/content{file}", self.content);
            return Answer::new(302, "").with("Location", &place);
        }
        match path.strip_prefix("/content/").and_then(|file| self.files.get(file)) {
            Some(bytes) => content(bytes, request),
            None => Answer::new(404, "").with("X-Error-Code", "RepoNotFound"),
        }
    }

    fn listing(&self) -> Value {
        let file = |(name, bytes): (&String, &Vec<u8>)| {
            let (size, sha256) = (bytes.len(), sha256(bytes));
            json!({ "rfilename": name, "size": size, "lfs": { "sha256": sha256, "size": size, "pointerSize": 130 } })
        };
        let mut siblings: Vec<Value> = self.files.iter().map(file).collect();
        siblings.push(json!({ "rfilename": "README.md", "size": 3 }));
        json!({ "id": self.repository, "sha": self.commit, "gated": false, "siblings": siblings })
    }
}

/// The content from the first byte that the request asks for.
pub fn content(bytes: &[u8], request: &Request) -> Answer {
    let from = request.range.as_deref().and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    match from {
        None => Answer::new(200, bytes),
        Some(from) if from < bytes.len() => {
            let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
            Answer::new(206, &bytes[from..]).with("Content-Range", &range)
        }
        Some(_) => Answer::new(416, ""),
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn address(listener: &TcpListener) -> String {
    format!("http://{}", listener.local_addr().unwrap())
}
