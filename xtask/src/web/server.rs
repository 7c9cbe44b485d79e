//! A server of static files for browsers on this machine.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// Bytes of a request line and its headers that are read at most.
const MAX_HEAD: u64 = 64 << 10;

/// Bytes after those that are discarded, so that the client reads the answer.
const MAX_DISCARDED: u64 = 1 << 20;

/// Time until an idle connection is closed.
const IDLE: Duration = Duration::from_secs(30);

/// A server that listens.
pub(crate) struct Server(TcpListener);

impl Server {
    /// Listens on a port of the loopback interface; on any free port if `port` is 0.
    pub(crate) fn bind(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        Ok(Self(listener.with_context(|| format!("port {port} of 127.0.0.1 is not free"))?))
    }

    /// Returns the address of the pages.
    pub(crate) fn address(&self) -> Result<String> {
        Ok(format!("http://{}/", self.0.local_addr()?))
    }

    /// Serves the files of a folder until the program ends.
    pub(crate) fn serve(self, folder: PathBuf) -> Result<()> {
        serve_all(self.0.incoming(), &folder);
        Ok(())
    }
}

/// Answers every connection. One that fails before it is accepted is no error of the server, nor is
/// a browser that closes one.
fn serve_all(connections: impl Iterator<Item = io::Result<TcpStream>>, folder: &Path) {
    for stream in connections {
        let Ok(stream) = stream else {
            // If files are exhausted, other connections have to end first.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let folder = folder.to_path_buf();
        // Without a thread, the connection is closed.
        drop(thread::Builder::new().spawn(move || drop(answer(&stream, &folder))));
    }
}

/// Answers the first request of a connection.
fn answer(stream: &TcpStream, folder: &Path) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    let Some(request) = request_line(stream)? else {
        let body = b"the request has more than 64 KiB";
        send(stream, "431 Request Header Fields Too Large", TEXT, body)?;
        // Closed with unread bytes, the connection would be reset before the answer is read.
        stream.shutdown(Shutdown::Write)?;
        io::copy(&mut stream.take(MAX_DISCARDED), &mut io::sink())?;
        return Ok(());
    };
    let (status, kind, body) = response(&request, folder);
    if request.starts_with("HEAD ") {
        send_head(stream, status, kind, body.len())
    } else {
        send(stream, status, kind, &body)
    }
}

/// Reads a request up to the empty line after its headers; returns its first line, or `None` if it
/// is longer than [`MAX_HEAD`].
fn request_line(stream: &TcpStream) -> io::Result<Option<String>> {
    let mut reader = BufReader::new(stream).take(MAX_HEAD);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    // The headers are of no interest, but a browser expects that they are read.
    let mut header = Vec::new();
    while reader.read_until(b'\n', &mut header)? > 2 {
        header.clear();
    }
    let is_complete = reader.limit() > 0 || header.ends_with(b"\n");
    Ok(is_complete.then_some(request))
}

fn send_head(mut stream: &TcpStream, status: &str, kind: &str, length: usize) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-cache\r\nConnection: close\r\n\r\n"
    )
}

fn send(mut stream: &TcpStream, status: &str, kind: &str, body: &[u8]) -> io::Result<()> {
    send_head(stream, status, kind, body.len())?;
    stream.write_all(body)
}

/// The MIME type of messages.
const TEXT: &str = "text/plain; charset=utf-8";

/// Returns status, MIME type and content for a request line.
fn response(request: &str, folder: &Path) -> (&'static str, &'static str, Vec<u8>) {
    let mut words = request.split(' ');
    if !matches!(words.next(), Some("GET" | "HEAD")) {
        return ("405 Method Not Allowed", TEXT, b"only GET and HEAD".to_vec());
    }
    let Some(path) = words.next().and_then(local_path) else {
        return ("400 Bad Request", TEXT, b"no such path".to_vec());
    };
    let mut file = folder.join(path);
    if file.is_dir() {
        file.push("index.html");
    }
    match fs::read(&file) {
        Ok(content) => ("200 OK", mime_type(&file), content),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            ("404 Not Found", TEXT, b"no such file".to_vec())
        }
        Err(error) => ("500 Internal Server Error", TEXT, error.to_string().into_bytes()),
    }
}

/// Returns the relative path of a URL's path; `None` if it leaves the folder.
fn local_path(url: &str) -> Option<PathBuf> {
    let path = url.split(['?', '#']).next()?.strip_prefix('/')?;
    let path = Path::new(path);
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    path.components().all(is_plain).then(|| path.to_path_buf())
}

/// Returns the MIME type of a file; browsers reject modules that have another one.
fn mime_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("wgsl" | "txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a request, and returns the answer.
    fn ask(address: &str, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn paths_stay_in_the_folder() {
        assert_eq!(local_path("/"), Some(PathBuf::new()));
        assert_eq!(local_path("/js/page.js?x=1"), Some("js/page.js".into()));
        for path in ["/../secret", "//etc/passwd", "/a/../../b", "no-slash"] {
            assert_eq!(local_path(path), None, "{path}");
        }
    }

    #[test]
    fn files_are_served_with_their_type() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("index.html"), "<p>hello").unwrap();
        fs::write(folder.path().join("module.wasm"), [0, 97, 115, 109]).unwrap();
        let server = Server::bind(0).unwrap();
        let address = server.address().unwrap();
        let address = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let served = folder.path().to_path_buf();
        thread::spawn(move || server.serve(served));
        let get = |line: &str| ask(&address, &format!("{line} HTTP/1.1\r\nHost: here\r\n\r\n"));
        let page = get("GET /");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"), "{page}");
        assert!(page.ends_with("\r\n\r\n<p>hello"), "{page}");
        assert!(get("GET /module.wasm").contains("Content-Type: application/wasm"));
        assert!(get("HEAD /").ends_with("\r\n\r\n"));
        assert!(get("GET /missing").starts_with("HTTP/1.1 404"));
        assert!(get("GET /../secret").starts_with("HTTP/1.1 400"));
        assert!(get("POST /").starts_with("HTTP/1.1 405"));
    }
    #[test]
    fn a_failed_connection_does_not_end_the_server() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("index.html"), "<p>hello").unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let served = folder.path().to_path_buf();
        thread::spawn(move || {
            let failed = Err(io::Error::from(ErrorKind::ConnectionAborted));
            serve_all(std::iter::once(failed).chain(listener.incoming()), &served);
        });
        assert!(ask(&address, "GET / HTTP/1.1\r\n\r\n").ends_with("<p>hello"));
    }

    #[test]
    fn large_requests_are_read_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("index.html"), "<p>hello").unwrap();
        let server = Server::bind(0).unwrap();
        let address = server.0.local_addr().unwrap().to_string();
        let served = folder.path().to_path_buf();
        thread::spawn(move || server.serve(served));
        let get = |bytes: usize| {
            let cookie = "x".repeat(bytes);
            ask(&address, &format!("GET / HTTP/1.1\r\nCookie: {cookie}\r\n\r\n"))
        };
        assert!(get(40 << 10).ends_with("<p>hello"));
        assert!(get(200 << 10).starts_with("HTTP/1.1 431 "));
    }
}
