//! A store that does what a script says, byte by byte: slow, silent, cut short, or plainly wrong.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;

/// A listener whose every request is answered by a script; closed when dropped.
#[derive(Debug)]
pub struct ScriptedOrigin {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
}

/// One request to the script.
#[derive(Debug)]
pub struct Exchange {
    /// The request's head, byte for byte, its empty line included.
    pub head: String,
    /// How many requests came before it, on any connection.
    pub earlier: usize,
    stream: BufReader<TcpStream>,
    open: bool,
}

impl ScriptedOrigin {
    /// Starts listening. The script may block: each connection has a thread.
    pub fn start(script: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let origin = Self {
            address: listener.local_addr()?,
            requests: Arc::default(),
            over: Arc::default(),
        };
        let (requests, over) = (Arc::clone(&origin.requests), Arc::clone(&origin.over));
        let script = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (script, requests) = (Arc::clone(&script), Arc::clone(&requests));
                // A connection that breaks is what scripts are about; the test looks at the other end.
                thread::spawn(move || drop(serve(stream, script.as_ref(), &requests)));
            }
        });
        Ok(origin)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

impl Drop for ScriptedOrigin {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // Wakes the listener, so that it sees that it is over.
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
        let earlier = {
            let mut requests = requests.lock();
            requests.push(head.clone());
            requests.len() - 1
        };
        let mut exchange = Exchange {
            head,
            earlier,
            stream,
            open: true,
        };
        script(&mut exchange)?;
        if !exchange.open {
            return exchange.stream.get_ref().shutdown(Shutdown::Both);
        }
        stream = exchange.stream;
    }
}

impl Exchange {
    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Sends a whole answer.
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

    /// Reads this many bytes of the body and forgets them.
    pub fn skip(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.stream).take(count), &mut io::sink())?;
        if skipped < count {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(())
        }
    }

    /// Waits until the other side has closed the connection, reading whatever it still sends.
    pub fn wait_for_close(&mut self) -> io::Result<u64> {
        io::copy(&mut self.stream, &mut io::sink())
    }

    /// Closes the connection after this exchange.
    pub fn close(&mut self) {
        self.open = false;
    }
}
