//! `weft web`: the pages for chat and training in a browser, served on this machine.

mod pages;

use crate::exit::usage;
use anyhow::{Context, Result, anyhow};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use clap::ValueHint;
use pages::{Pages, Served};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The port if none is given.
const PORT: u16 = 4455;

/// Chat and train in a browser: serve the pages and the default model on this machine
///
/// The pages compute in the browser, on its GPU or its CPU, and send nothing anywhere. Only this
/// machine reaches them, because browsers give WebGPU to localhost and to https alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft web
  weft web --port 0          any free port
  weft web --dir target/web/site    other pages than those of this binary")]
pub struct Args {
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Serve the pages of this folder, which `cargo xtask web --out DIR` writes
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let pages = match &args.dir {
        Some(folder) => Pages::of_folder(folder)?,
        None => Pages::of_binary().ok_or_else(|| {
            usage("this weft was built without its pages; name a folder of pages with --dir, or build weft after `cargo xtask web`")
        })?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().context("starting the server")?;
    runtime.block_on(serve(args, pages))
}

async fn serve(args: &Args, pages: Pages) -> Result<()> {
    let address = SocketAddr::new(args.host, args.port);
    let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow!(
                "port {} of {} is in use; choose another with --port, or a free one with --port 0",
                args.port,
                args.host
            )
        }
        _ => anyhow!("cannot listen on {address}: {error}"),
    })?;
    let at = listener.local_addr().context("the address of the server")?;
    // Browsers give pages of `localhost` WebGPU, whatever the address behind it.
    let name = if at.ip().is_loopback() { "localhost".to_string() } else { at.ip().to_string() };
    println!("http://{name}:{}/", at.port());
    let server = Server { pages, only_local: at.ip().is_loopback() };
    let router = Router::new().fallback(answer).with_state(Arc::new(server));
    axum::serve(listener, router).await.context("serving")
}

struct Server {
    pages: Pages,
    /// Whether requests must name this machine, so that no page of another site reaches the server
    /// through a name of its own.
    only_local: bool,
}

async fn answer(State(server): State<Arc<Server>>, method: Method, uri: Uri, headers: HeaderMap) -> Response<Body> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if server.only_local && !is_local(host) {
        return plain(StatusCode::FORBIDDEN, "this server answers to localhost alone\n");
    }
    if method != Method::GET && method != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "pages are read with GET\n");
    }
    match server.pages.find(uri.path()) {
        Ok(Some(served)) => page(served, method == Method::HEAD),
        Ok(None) => plain(StatusCode::NOT_FOUND, "there is no such page\n"),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")),
    }
}

/// Whether a request names this machine.
fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|c| c.is_ascii_digit()));
    matches!(name.map_or(host, |(name, _)| name), "localhost" | "127.0.0.1" | "[::1]")
}

fn plain(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = status;
    response
}

fn page(served: Served, only_head: bool) -> Response<Body> {
    let mut builder = Response::builder()
        .header(header::CONTENT_TYPE, served.media_type)
        .header(header::CONTENT_LENGTH, served.bytes.len())
        // The service worker of the pages keeps them; it asks whether there are newer ones.
        .header(header::CACHE_CONTROL, "no-cache")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::REFERRER_POLICY, "no-referrer");
    if served.is_packed {
        builder = builder.header(header::CONTENT_ENCODING, "gzip");
    }
    let body = if only_head { Body::empty() } else { Body::from(served.bytes.into_owned()) };
    builder.body(body).unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "a header is wrong\n"))
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in ["localhost", "localhost:4455", "127.0.0.1:80", "[::1]:4455", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["", "example.org", "localhost.example.org:4455", "127.0.0.1.example.org", "localhost:a"] {
            assert!(!is_local(host), "{host}");
        }
    }
}
