//! Claims: of the processes of a host that need the same value, one fetches it while the others wait for its file.
//!
//! A claim is a file next to the value's, created exclusively, with the process that holds it. The holder removes it once the
//! value is stored, or will not be. A claim is stale if its holder has ended or its lease is over: whoever needs the value
//! then takes it over.
//!
//! A claim saves work and protects nothing. Two holders of one value only fetch it twice: values are renamed into place and
//! verified when they are read.

use std::{
    fmt,
    fs::{self, File},
    io::{self, ErrorKind, Read as _, Write as _},
    path::{Path, PathBuf},
    str::FromStr,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// How long a claim keeps others from fetching the value. No batch waits longer than this.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Extension of the file of a claim.
pub(super) const EXTENSION: &str = "claim";
/// The most bytes of a claim: three numbers.
const MAX_BYTES: u64 = 64;

/// A value that this process fetches. Dropping it lets others fetch the value.
#[derive(Debug)]
#[must_use = "others may fetch the value as soon as this is dropped"]
pub(crate) struct Claim {
    file: PathBuf,
    since: Instant,
}

/// The state of the file of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimState {
    /// Nobody holds a claim.
    Free,
    /// Its holder lives, or may live, and its lease is not over.
    Held,
    /// Its holder has ended, or its lease is over.
    Stale,
}

/// The process that holds a claim. A part that the system does not state is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    pid: u32,
    /// When the process began, in clock ticks since the boot: the system uses pids again.
    start_ticks: u64,
    /// Inode of the namespace that the pid belongs to: containers may share a folder.
    namespace: u64,
}

/// The holders whose state is known, so that it is determined once for many claims.
#[derive(Debug, Default)]
pub(super) struct KnownHolders(Vec<(Holder, bool)>);

impl Claim {
    /// Creates a claim; `None` if its file exists.
    pub(super) fn create(file: &Path) -> io::Result<Option<Self>> {
        let mut created = File::create_new(file);
        if let (Err(error), Some(folder)) = (&created, file.parent())
            && error.kind() == ErrorKind::NotFound
        {
            fs::create_dir_all(folder)?;
            created = File::create_new(file);
        }
        let mut created = match created {
            Ok(created) => created,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(error),
        };
        // Removed again if its holder cannot be written.
        let claim = Self {
            file: file.to_owned(),
            since: Instant::now(),
        };
        created.write_all(format!("{}\n", Holder::current()).as_bytes())?;
        Ok(Some(claim))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // After the lease the file may belong to another process.
        let is_own = self.since.elapsed() < LEASE
            || ClaimState::of(&self.file, &mut KnownHolders::default()) == ClaimState::Stale;
        if is_own {
            // If it cannot be removed, its lease ends.
            drop(fs::remove_file(&self.file));
        }
    }
}

impl ClaimState {
    /// The state of a claim's file. A file that cannot be read is no claim.
    pub(super) fn of(file: &Path, holders: &mut KnownHolders) -> Self {
        let Ok(opened) = File::open(file) else {
            return Self::Free;
        };
        let modified = opened.metadata().and_then(|metadata| metadata.modified());
        // A time in the future is that of a clock that was set back since then.
        let age = modified.map(|modified| modified.elapsed().unwrap_or_default());
        if age.is_ok_and(|age| age >= LEASE) {
            return Self::Stale;
        }
        let mut text = String::new();
        let read = opened.take(MAX_BYTES).read_to_string(&mut text);
        // The holder is written after the file is created: until then only the lease counts.
        match read.ok().and_then(|_bytes| text.parse().ok()) {
            Some(holder) if !holders.is_alive(holder) => Self::Stale,
            _ => Self::Held,
        }
    }
}

impl KnownHolders {
    fn is_alive(&mut self, holder: Holder) -> bool {
        if let Some((_, is_alive)) = self.0.iter().find(|(known, _)| *known == holder) {
            return *is_alive;
        }
        let is_alive = holder.is_alive();
        self.0.push((holder, is_alive));
        is_alive
    }
}

impl Holder {
    /// This process.
    fn current() -> Self {
        static CURRENT: OnceLock<Holder> = OnceLock::new();
        let pid = std::process::id();
        let of_process = || Self {
            pid,
            start_ticks: start_ticks(pid).unwrap_or_default(),
            namespace: namespace().unwrap_or_default(),
        };
        // A fork has the memory of its parent, and another pid.
        let known = CURRENT.get_or_init(of_process);
        if known.pid == pid { *known } else { of_process() }
    }

    /// Whether the process runs. One that this process cannot see counts as running: the lease bounds the wait for it.
    fn is_alive(self) -> bool {
        let is_visible = self.start_ticks != 0 && self.namespace == Self::current().namespace;
        !is_visible || start_ticks(self.pid) == Some(self.start_ticks)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            start_ticks,
            namespace,
        } = self;
        write!(f, "{pid} {start_ticks} {namespace}")
    }
}

impl FromStr for Holder {
    type Err = ();

    /// Reads a whole line: a claim may be read while it is written.
    fn from_str(text: &str) -> Result<Self, ()> {
        let line = text.strip_suffix('\n').ok_or(())?;
        let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        match numbers.map_err(drop)?[..] {
            [pid, start_ticks, namespace] => Ok(Self {
                pid: pid.try_into().map_err(drop)?,
                start_ticks,
                namespace,
            }),
            _ => Err(()),
        }
    }
}

/// When a process began, in clock ticks since the boot; `None` if it has ended, or the system does not state it.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The second field is the program's name in parentheses, and may contain any character. The state is the third field.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    // A process that was killed stays as a zombie until its parent takes notice.
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let start_ticks = fields.nth(18)?.parse().ok()?;
    (!has_ended).then_some(start_ticks)
}

/// Inode of the namespace of this process's pid.
fn namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;

    Some(fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

#[cfg(test)]
mod tests;
