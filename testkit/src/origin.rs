//! A scripted origin, for slow, silent, truncated or invalid answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;

/// A listener that answers all requests by a script, closed when dropped.
#[derive(Debug)]
pub struct ScriptedOrigin {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    is_closed: Arc<AtomicBool>,
}

/// One request, and the connection for its answer.
#[derive(Debug)]
pub struct Exchange {
    /// The exact head of the request, including the empty line.
    pub head: String,
    /// Number of earlier requests, on all connections.
    pub earlier_requests: usize,
    stream: BufReader<TcpStream>,
    is_open: bool,
}

impl ScriptedOrigin {
    /// Starts listening. The script may block, since each connection has a thread.
    pub fn start(script: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static) -> Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), script)
    }

    /// The same at this address.
    pub fn start_at(
        address: SocketAddr,
        script: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind(address)?;
        let origin = Self {
            address: listener.local_addr()?,
            requests: Arc::default(),
            connections: Arc::default(),
            is_closed: Arc::default(),
        };
        let (requests, is_closed) = (Arc::clone(&origin.requests), Arc::clone(&origin.is_closed));
        let connections = Arc::clone(&origin.connections);
        let script = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if is_closed.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                connections.fetch_add(1, Ordering::AcqRel);
                let (script, requests) = (Arc::clone(&script), Arc::clone(&requests));
                // Errors of a connection are part of the script; the test checks the other end.
                thread::spawn(move || drop(serve(stream, script.as_ref(), &requests)));
            }
        });
        Ok(origin)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }
}

impl Drop for ScriptedOrigin {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        // Wakes the listener, so that it ends.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(
    stream: TcpStream,
    script: &(impl Fn(&mut Exchange) -> io::Result<()> + ?Sized),
    requests: &Mutex<Vec<String>>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let earlier_requests = {
            let mut requests = requests.lock();
            requests.push(head.clone());
            requests.len() - 1
        };
        let mut exchange = Exchange {
            head,
            earlier_requests,
            stream,
            is_open: true,
        };
        script(&mut exchange)?;
        if !exchange.is_open {
            return exchange.stream.get_ref().shutdown(Shutdown::Both);
        }
        stream = exchange.stream;
    }
}

impl Exchange {
    /// Sends raw bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Sends a complete answer.
    pub fn answer(&mut self, status: &str, body: &str) -> io::Result<()> {
        self.send(format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// Reads this many bytes of the body.
    pub fn read(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads and drops this many bytes of the body.
    pub fn skip(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.stream).take(count), &mut io::sink())?;
        if skipped < count {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(())
        }
    }

    /// Passes this many bytes of the body on, in pieces as they arrive.
    pub fn copy(&mut self, count: u64, mut send: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut left = count;
        while left > 0 {
            let available = self.stream.fill_buf()?;
            if available.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let taken = usize::try_from(left).map_or(available.len(), |left| left.min(available.len()));
            send(&available[..taken])?;
            self.stream.consume(taken);
            left -= taken as u64;
        }
        Ok(())
    }

    /// Reads a line of the body, with its end.
    pub fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        if line.ends_with('\n') {
            Ok(line)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// Reads until the peer closes the connection, and returns the number of bytes.
    pub fn wait_for_close(&mut self) -> io::Result<u64> {
        io::copy(&mut self.stream, &mut io::sink())
    }

    /// Closes the connection after an answer to a request whose body is not read. Drops what the peer has sent of it: a reset
    /// could destroy the answer.
    pub fn close_without_body(&mut self) -> io::Result<()> {
        self.close();
        self.stream.get_ref().shutdown(Shutdown::Write)?;
        self.wait_for_close().map(drop)
    }

    /// Closes the connection after this exchange.
    pub fn close(&mut self) {
        self.is_open = false;
    }
}
