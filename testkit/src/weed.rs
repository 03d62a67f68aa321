//! SeaweedFS, an S3 store that is installed from a wheel, as a child process.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::slice::from_ref;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::process::{Process, eventually};
use crate::raw::Request;
use crate::sign::{Keys, Payload};

/// The host of its virtual hosts, `BUCKET.s3.localhost`. Path-style requests may have any other host.
const DOMAIN: &str = "s3.localhost";

/// Each port has a gRPC port at this offset.
const GRPC_OFFSET: u16 = 10_000;

/// How many files it keeps objects in, each of one bucket, and the megabytes of each.
#[derive(Debug, Clone, Copy)]
struct Volumes {
    count: u32,
    growth: u32,
    megabytes: u32,
}

/// More than any test writes.
const LARGE: Volumes = Volumes {
    count: 100,
    growth: 7,
    megabytes: 256,
};

/// Full after some megabytes.
const SMALL: Volumes = Volumes {
    count: 3,
    growth: 1,
    megabytes: 1,
};

/// A running SeaweedFS, killed when dropped.
#[derive(Debug)]
pub struct Weed {
    process: Process,
    address: SocketAddr,
    directory: TempDir,
}

impl Weed {
    /// Starts SeaweedFS with an identity with all permissions for each of these keys, and waits until it accepts an object.
    pub fn launch(keys: &[Keys]) -> Result<Self> {
        Self::launch_with_guests(keys, &[])
    }

    /// The same, with identities that may only read a bucket `guests`.
    pub fn launch_with_guests(keys: &[Keys], guests: &[Keys]) -> Result<Self> {
        Self::launch_with_volumes(keys, guests, LARGE)
    }

    /// Starts one with all permissions for these keys that is full after some megabytes, and refuses objects then. Deleting a bucket
    /// makes room for others.
    pub fn launch_small(keys: &Keys) -> Result<Self> {
        Self::launch_with_volumes(from_ref(keys), &[], SMALL)
    }

    fn launch_with_volumes(keys: &[Keys], guests: &[Keys], volumes: Volumes) -> Result<Self> {
        // Retries, since another process may take a port between its choice and its use.
        let attempt = || Self::attempt(keys, guests, volumes);
        attempt().or_else(|_taken| attempt())
    }

    fn attempt(keys: &[Keys], guests: &[Keys], volumes: Volumes) -> Result<Self> {
        let binary = find()?;
        let directory = tempfile::tempdir()?;
        let first = keys.first().context("expected at least one pair of keys")?;
        let config = write_identities(directory.path(), keys, guests)?;
        let [master, volume, filer, s3] = free_ports()?;
        let mut command = Command::new(&binary);
        command.arg("server").arg("-s3").arg("-filer");
        command.arg(format!("-dir={}", directory.path().display()));
        command.args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1"]);
        command
            .arg(format!("-master.port={master}"))
            .arg(format!("-volume.port={volume}"));
        command
            .arg(format!("-filer.port={filer}"))
            .arg(format!("-s3.port={s3}"));
        command.arg(format!("-s3.config={}", config.display()));
        command.arg(format!("-s3.domainName={DOMAIN}"));
        command.args(["-master.telemetry=false", "-master.electionTimeout=1s"]);
        let Volumes {
            count,
            growth,
            megabytes,
        } = volumes;
        command.arg(format!("-volume.max={count}"));
        command.arg(format!("-master.volumeSizeLimitMB={megabytes}"));
        // Volumes that a bucket gets at a time.
        command.env("WEED_MASTER_VOLUME_GROWTH_COPY_1", growth.to_string());
        // The default, one percent of the disk, may be gigabytes; with less free space it refuses objects.
        command.arg("-volume.minFreeSpace=100MiB");
        // Disables listeners on fixed ports, which would stop a second instance.
        command.args(["-s3.port.iceberg=0", "-s3.port.lance=0"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(directory.path().join("log"))?);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut weed = Self {
            process: Process::new("SeaweedFS", child),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, s3)),
            directory,
        };
        eventually("SeaweedFS accepts an object", Duration::from_mins(1), || {
            weed.process.check()?;
            Ok(weed
                .accepts_an_object(first)
                .is_ok_and(|accepted| accepted)
                .then_some(()))
        })
        .with_context(|| format!("its log: {}", weed.log().unwrap_or_default()))?;
        Ok(weed)
    }

    /// Address of its S3 endpoint.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the host that its virtual hosts are below. Only readers and gateways find such host names.
    pub fn domain_url(&self) -> String {
        format!("http://{DOMAIN}:{}", self.address.port())
    }

    /// Replaces all identities, as [`launch_with_guests`](Self::launch_with_guests) has them. It takes effect soon after.
    pub fn set_identities(&self, keys: &[Keys], guests: &[Keys]) -> Result<()> {
        write_identities(self.directory.path(), keys, guests)?;
        // On this signal SeaweedFS reads the file again.
        let status = Command::new("kill")
            .args(["-HUP", &self.process.id().to_string()])
            .status()?;
        ensure!(status.success(), "kill: {status}");
        Ok(())
    }

    fn log(&self) -> Result<String> {
        let log = std::fs::read_to_string(self.directory.path().join("log"))?;
        let lines: Vec<_> = log.lines().rev().take(20).collect();
        Ok(lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }

    /// Whether it accepts an object. Its components connect one after the other, and an object needs all of them.
    fn accepts_an_object(&self, keys: &Keys) -> Result<bool> {
        let send = |method: &str, target: &str, body: &str| -> Result<u16> {
            let request = Request::new(method, target)
                .header("host", &self.address.to_string())
                .body(body);
            Ok(keys.sign(request, Payload::Signed)?.send(self.address)?.status)
        };
        send("PUT", "/readiness", "")?;
        let accepted = send("PUT", "/readiness/object", "ready")? == 200;
        if accepted {
            send("DELETE", "/readiness/object", "")?;
            send("DELETE", "/readiness", "")?;
        }
        Ok(accepted)
    }
}

/// Writes the identities into a file in `folder`, and returns its path.
fn write_identities(folder: &Path, keys: &[Keys], guests: &[Keys]) -> Result<PathBuf> {
    let identity = |keys: &Keys, actions: &[&str]| {
        serde_json::json!({
            "name": keys.access,
            "credentials": [{ "accessKey": keys.access, "secretKey": keys.secret }],
            "actions": actions,
        })
    };
    let all = ["Admin", "Read", "List", "Tagging", "Write"];
    let owners = keys.iter().map(|keys| identity(keys, &all));
    let guests = guests.iter().map(|keys| identity(keys, &["Read:guests"]));
    let identities: Vec<_> = owners.chain(guests).collect();
    let file = folder.join("identities.json");
    std::fs::write(&file, serde_json::json!({ "identities": identities }).to_string())?;
    Ok(file)
}

/// Path of `weed` in the virtual environment of the repository.
fn find() -> Result<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let binary = root.join(".venv/bin/weed");
    if !binary.is_file() {
        bail!(
            "{} is missing: run `make setup`, or skip SeaweedFS with PUSHDOWN_TEST_BACKENDS=embedded",
            binary.display()
        );
    }
    Ok(binary)
}

/// Four free ports whose gRPC ports are free as well.
fn free_ports() -> Result<[u16; 4]> {
    let mut listeners = Vec::new();
    let mut ports = Vec::new();
    for _ in 0..1000 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if port < u16::MAX - GRPC_OFFSET
            && let Ok(grpc_listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port + GRPC_OFFSET))
        {
            ports.push(port);
            listeners.push(grpc_listener);
        }
        listeners.push(listener);
        if let [master, volume, filer, s3] = ports[..] {
            return Ok([master, volume, filer, s3]);
        }
    }
    bail!("found no four free ports with free gRPC ports")
}
