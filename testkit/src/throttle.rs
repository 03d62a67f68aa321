//! A link with a known rate.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// A link in front of a server, whose rate from the server to the client can be set.
#[derive(Debug, Clone)]
pub struct Throttle {
    bytes_per_second: Arc<AtomicU64>,
    /// When the link can send the next bytes.
    free_at: Arc<Mutex<Instant>>,
    /// Bytes sent to the client.
    bytes_passed: Arc<AtomicU64>,
    clients: Clients,
}

/// Whose connections the rate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clients {
    All,
    ThisProcess,
}

impl Throttle {
    /// Starts an unlimited link to the server, and returns its address for clients.
    pub fn start(server: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        Self::start_for(Clients::All, server)
    }

    /// Starts the link of a reader in this process: other processes, such as a gateway near the server, reach the server at the same
    /// address without a limit.
    pub fn start_for_this_process(server: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        Self::start_for(Clients::ThisProcess, server)
    }

    fn start_for(clients: Clients, server: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let link = Self {
            bytes_per_second: Arc::default(),
            free_at: Arc::new(Mutex::new(Instant::now())),
            bytes_passed: Arc::default(),
            clients,
        };
        let address = link.also_to(server)?;
        Ok((link, address))
    }

    /// The address of another server at the other end of this link.
    pub fn also_to(&self, server: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let link = self.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                // Without a server the link ends, and refuses further connections.
                if client.and_then(|client| link.connect(client, server)).is_err() {
                    return;
                }
            }
        });
        Ok(address)
    }

    /// Sets the rate; 0 is unlimited.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Relaxed);
    }

    /// The number of bytes sent to clients so far.
    pub fn bytes_passed(&self) -> u64 {
        self.bytes_passed.load(Relaxed)
    }

    fn connect(&self, client: TcpStream, server: SocketAddr) -> io::Result<()> {
        let server = TcpStream::connect(server)?;
        // With Nagle's algorithm the last piece of an answer waits for an acknowledgement, and the link looks slow.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (up, down) = (client.try_clone()?, server.try_clone()?);
        let link = self.clone();
        let is_limited = match self.clients {
            Clients::All => true,
            Clients::ThisProcess => is_of_this_process(client.peer_addr()?)?,
        };
        thread::spawn(move || copy(up, server, |_| ()));
        thread::spawn(move || {
            copy(down, client, |bytes| {
                if is_limited {
                    link.wait(bytes);
                }
            });
        });
        Ok(())
    }

    fn wait(&self, bytes: usize) {
        self.bytes_passed.fetch_add(bytes as u64, Relaxed);
        let rate = self.bytes_per_second.load(Relaxed);
        let Some(nanos) = (bytes as u64 * 1_000_000_000).checked_div(rate) else {
            return;
        };
        let until = {
            let mut free_at = self.free_at.lock();
            *free_at = (*free_at).max(Instant::now()) + Duration::from_nanos(nanos);
            *free_at
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

/// Whether this process has the socket with this local address, by Linux's tables of sockets.
fn is_of_this_process(client: SocketAddr) -> io::Result<bool> {
    let end = format!(":{:04X}", client.port());
    let sockets = fs::read_to_string("/proc/self/net/tcp")?;
    // Number, local address, remote address, and, as the tenth field, the inode.
    let inode = sockets.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        (fields.get(1)?.ends_with(&end)).then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
    });
    let Some(inode) = inode else { return Ok(false) };
    let files = fs::read_dir("/proc/self/fd")?.filter_map(Result::ok);
    let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    Ok(targets.any(|target| target.as_os_str() == inode.as_str()))
}

/// Copies until either end closes its connection.
fn copy(mut from: TcpStream, mut to: TcpStream, wait: impl Fn(usize)) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        wait(read);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _gone = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}
