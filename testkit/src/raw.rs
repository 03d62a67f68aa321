//! A raw HTTP/1.1 client, which sends exact bytes and returns exact answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Timeout of a read or a write; a test that takes longer hangs.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A request with its exact bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The exact target.
    pub target: String,
    /// The headers in order, with exact names.
    pub headers: Vec<(String, String)>,
    /// The body, encoded as the headers declare.
    pub body: Vec<u8>,
}

/// A final answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Statuses of earlier 1xx answers.
    pub informational: Vec<u16>,
    /// The status.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The headers in order, with exact names.
    pub headers: Vec<(String, String)>,
    /// The decoded body.
    pub body: Vec<u8>,
}

/// One connection.
#[derive(Debug)]
pub struct Raw {
    stream: BufReader<TcpStream>,
}

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The answer with an empty body.
    pub head: Response,
    stream: &'a mut BufReader<TcpStream>,
    has_no_body: bool,
}

impl Request {
    /// A request without headers.
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body and `Content-Length`.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("content-length", &length)
    }

    /// The value of the first header of this name.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        value_of(&self.headers, name)
    }

    /// The bytes of the head.
    pub fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// Sends the request on a new connection, and reads the complete answer.
    pub fn send(&self, address: SocketAddr) -> Result<Response> {
        let mut raw = Raw::connect(address)?;
        raw.write(&[self.head(), self.body.clone()].concat())?;
        raw.read(&self.method)
            .with_context(|| format!("{} {}", self.method, self.target))
    }
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        value_of(&self.headers, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The content of the first XML element of this name in the body.
    pub fn element(&self, name: &str) -> Option<String> {
        let text = self.text();
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.to_owned())
    }
}

impl Raw {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        Self::new(TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?)
    }

    /// Takes a stream that is connected.
    pub fn new(stream: TcpStream) -> Result<Self> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends bytes. Ignores that the peer has closed the connection, since its earlier answer can still be read.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self.stream.get_mut().write_all(bytes) {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                Err(error.into())
            }
            _ => Ok(()),
        }
    }

    /// Reads the answer to a request of this method.
    pub fn read(&mut self, method: &str) -> Result<Response> {
        self.begin(method)?.finish()
    }

    /// Reads the head of the answer to a request of this method.
    pub fn begin(&mut self, method: &str) -> Result<Incoming<'_>> {
        let mut informational = Vec::new();
        loop {
            let mut head = self.head()?;
            if (100..200).contains(&head.status) {
                informational.push(head.status);
                continue;
            }
            head.informational = informational;
            let has_no_body = method == "HEAD" || matches!(head.status, 204 | 304);
            return Ok(Incoming {
                head,
                stream: &mut self.stream,
                has_no_body,
            });
        }
    }

    /// Reads one head, which may be that of a 1xx answer.
    pub fn head(&mut self) -> Result<Response> {
        let line = read_line(&mut self.stream)?.context("the connection was closed without an answer")?;
        let mut words = line.splitn(3, ' ');
        let (version, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !version.starts_with("HTTP/1.") {
            bail!("expected an HTTP/1 status line, found: {line}");
        }
        let reason = words.next().unwrap_or_default().to_owned();
        let mut headers = Vec::new();
        loop {
            let line = read_line(&mut self.stream)?.context("the connection was closed within a head")?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line
                .split_once(':')
                .with_context(|| format!("expected a header, found: {line}"))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(Response {
            informational: Vec::new(),
            status: status.parse()?,
            reason,
            headers,
            body: Vec::new(),
        })
    }

    /// Whether the peer closes the connection without sending another byte.
    pub fn is_closed(&mut self) -> Result<bool> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(read) => Ok(read == 0),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

impl Incoming<'_> {
    /// Whether an answer with this status to this method has a body, of any length.
    pub fn has_body(&self) -> bool {
        !self.has_no_body
    }

    /// Reads bytes of the undecoded body.
    pub fn read_exact(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads and drops bytes of the undecoded body.
    pub fn skip(&mut self, count: u64) -> Result<()> {
        let skipped = io::copy(&mut (&mut *self.stream).take(count), &mut io::sink())?;
        if skipped < count {
            bail!("truncated body: expected {count} bytes, found {skipped}");
        }
        Ok(())
    }

    /// Reads the next chunk of a chunked body; `None` after the last one.
    pub fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let chunk = read_chunk(self.stream)?;
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }

    /// Reads the whole body. A truncated body is an error.
    pub fn finish(self) -> Result<Response> {
        let Self {
            mut head,
            stream,
            has_no_body,
        } = self;
        if has_no_body {
            return Ok(head);
        }
        let chunked = head
            .header("transfer-encoding")
            .is_some_and(|value| value.contains("chunked"));
        if chunked {
            head.body = read_chunks(stream)?;
        } else if let Some(length) = head.header("content-length") {
            let length: usize = length.parse()?;
            stream.take(length as u64).read_to_end(&mut head.body)?;
            if head.body.len() < length {
                bail!(
                    "truncated body: expected {length} bytes, found {}",
                    head.body.len()
                );
            }
        } else {
            stream.read_to_end(&mut head.body)?;
        }
        Ok(head)
    }
}

fn read_chunks(stream: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let chunk = read_chunk(stream)?;
        if chunk.is_empty() {
            return Ok(body);
        }
        body.extend(chunk);
    }
}

/// Reads one chunk; the last one is empty.
fn read_chunk(stream: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let size = read_line(stream)?.context("truncated body: no last chunk")?;
    let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)?;
    let mut chunk = Vec::new();
    stream.take(size as u64).read_to_end(&mut chunk)?;
    if chunk.len() < size {
        bail!("truncated body: it ends within a chunk");
    }
    while let Some(line) = read_line(stream)? {
        if line.is_empty() {
            break;
        }
    }
    Ok(chunk)
}

/// The value of the first header of this name.
fn value_of<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value.as_str()))
}

/// Reads a line without its end; `None` at the end of the stream. Non-ASCII bytes are read as Latin-1.
fn read_line(stream: &mut BufReader<TcpStream>) -> Result<Option<String>> {
    let mut line = Vec::new();
    if stream.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    while matches!(line.last(), Some(b'\r' | b'\n')) {
        line.pop();
    }
    Ok(Some(line.into_iter().map(char::from).collect()))
}
