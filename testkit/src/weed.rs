//! SeaweedFS: a production store that installs from a wheel, as its own process.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::process::{Process, eventually};
use crate::raw::Request;
use crate::sign::{Keys, Payload};

/// Each of its ports has a gRPC twin this much higher.
const GRPC: u16 = 10_000;

/// A running SeaweedFS; killed when dropped.
#[derive(Debug)]
pub struct Weed {
    process: Process,
    address: SocketAddr,
    directory: TempDir,
}

impl Weed {
    /// Starts it with an identity for each of these keys, all of which may do anything, and waits until it takes an
    /// object.
    pub fn launch(keys: &[Keys]) -> Result<Self> {
        // Its ports were free when they were chosen; another process may have been faster.
        Self::attempt(keys).or_else(|_taken| Self::attempt(keys))
    }

    fn attempt(keys: &[Keys]) -> Result<Self> {
        let binary = find()?;
        let directory = tempfile::tempdir()?;
        let first = keys.first().context("a store without keys takes no object")?;
        let config = directory.path().join("identities.json");
        let identities: Vec<_> = keys
            .iter()
            .map(|keys| {
                serde_json::json!({
                    "name": keys.access,
                    "credentials": [{ "accessKey": keys.access, "secretKey": keys.secret }],
                    "actions": ["Admin", "Read", "List", "Tagging", "Write"],
                })
            })
            .collect();
        std::fs::write(
            &config,
            serde_json::json!({ "identities": identities }).to_string(),
        )?;
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
        command.args(["-master.telemetry=false", "-master.electionTimeout=1s"]);
        command.args(["-volume.max=100", "-master.volumeSizeLimitMB=256"]);
        // With less than a hundredth of the disk free, gigabytes, it would take no object.
        command.arg("-volume.minFreeSpace=100MiB");
        // Further listeners on fixed ports: a second instance would end because of them.
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
        eventually("SeaweedFS takes an object", Duration::from_mins(1), || {
            weed.process.check()?;
            Ok(weed.takes_an_object(first).is_ok_and(|takes| takes).then_some(()))
        })
        .with_context(|| format!("its log is {}", weed.log().unwrap_or_default()))?;
        Ok(weed)
    }

    /// Where it serves S3.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn log(&self) -> Result<String> {
        let log = std::fs::read_to_string(self.directory.path().join("log"))?;
        let lines: Vec<_> = log.lines().rev().take(20).collect();
        Ok(lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }

    /// Its parts find each other one after the other; an object needs them all.
    fn takes_an_object(&self, keys: &Keys) -> Result<bool> {
        let send = |method: &str, target: &str, body: &str| -> Result<u16> {
            let request = Request::new(method, target)
                .header("host", &self.address.to_string())
                .body(body);
            Ok(keys.sign(request, Payload::Signed)?.send(self.address)?.status)
        };
        send("PUT", "/readiness", "")?;
        let takes = send("PUT", "/readiness/object", "ready")? == 200;
        if takes {
            send("DELETE", "/readiness/object", "")?;
            send("DELETE", "/readiness", "")?;
        }
        Ok(takes)
    }
}

/// `weed` from the repository's virtual environment, where the set-up puts it.
fn find() -> Result<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let binary = root.join(".venv/bin/weed");
    if !binary.is_file() {
        bail!(
            "{} is missing: run `make setup`, or leave SeaweedFS out with PUSHDOWN_TEST_BACKENDS=embedded",
            binary.display()
        );
    }
    Ok(binary)
}

/// Four free ports, from the kernel where they fit, whose gRPC twins are free too.
fn free_ports() -> Result<[u16; 4]> {
    let mut held = Vec::new();
    let mut ports = Vec::new();
    for _ in 0..1000 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if port < u16::MAX - GRPC
            && let Ok(twin) = TcpListener::bind((Ipv4Addr::LOCALHOST, port + GRPC))
        {
            ports.push(port);
            held.push(twin);
        }
        held.push(listener);
        if let [master, volume, filer, s3] = ports[..] {
            return Ok([master, volume, filer, s3]);
        }
    }
    bail!("no four free ports with free twins")
}
