//! Chooses the id of this gateway among its replicas.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use tracing::warn;

use crate::config::ReplicaId;

/// Name of the file with the id, in the folder of the result cache.
const NAME: &str = "replica-id";
/// Its name while it is written.
const NEW_NAME: &str = "replica-id.new";
/// More than the longest id.
const MAX_BYTES: u64 = 1024;
/// Where the kernel has the name of this host.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// The id in the folder of the result cache, where a new gateway leaves a random one: after a restart it has the same samples, whose
/// values are in this folder. Without a folder, or if nothing can be written there, host name and port of `listen`, the bound address.
///
/// # Errors
/// If the file in the folder cannot be read, or if its text is no id.
pub(crate) fn default_id(cache_folder: Option<&Path>, listen: SocketAddr) -> io::Result<ReplicaId> {
    let Some(folder) = cache_folder else {
        return Ok(of_address(listen));
    };
    if let Some(id) = saved(folder)? {
        return Ok(id);
    }
    let id = ReplicaId::random();
    Ok(match save(folder, &id) {
        Ok(()) => id,
        Err(error) => {
            let id = of_address(listen);
            warn!(%error, folder = %folder.display(), %id, "cannot save an id among replicas in the folder of the result cache");
            id
        }
    })
}

/// The id that an earlier run left in the folder; `None` without a file.
fn saved(folder: &Path) -> io::Result<Option<ReplicaId>> {
    let path = folder.join(NAME);
    let fault = |kind: io::ErrorKind, text: &str| {
        io::Error::new(
            kind,
            format!(
                "{}: {text}; write an id into this file, or remove it for a new one",
                path.display()
            ),
        )
    };
    let mut text = String::new();
    match fs::File::open(&path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)) {
        Ok(_bytes) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error.kind(), &error.to_string())),
    }
    let id = text.trim_end_matches(['\r', '\n']).parse();
    id.map(Some)
        .map_err(|text: String| fault(io::ErrorKind::InvalidData, &text))
}

/// Saves an id. The file is on the disk when it has its name, so that a crash leaves either no file or the id.
fn save(folder: &Path, id: &ReplicaId) -> io::Result<()> {
    let new = folder.join(NEW_NAME);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(format!("{id}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(new, folder.join(NAME))
}

/// Host name and port; the address itself on a host without a valid name.
fn of_address(listen: SocketAddr) -> ReplicaId {
    let host = fs::read_to_string(HOST_NAME).unwrap_or_default();
    let host = Some(host.trim_end()).filter(|host| !host.is_empty());
    let named = host.and_then(|host| format!("{host}:{}", listen.port()).parse().ok());
    named.unwrap_or_else(|| ReplicaId::from(listen))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9900);

    #[test]
    fn without_a_folder_the_id_is_host_and_port() {
        let id = default_id(None, LISTEN).unwrap();
        assert!(id.as_str().ends_with(":9900"), "{id}");
        assert_ne!(id.as_str(), ":9900");
    }

    #[test]
    fn the_id_in_the_folder_stays() {
        let folder = tempfile::tempdir().unwrap();
        let id = default_id(Some(folder.path()), LISTEN).unwrap();
        assert_eq!(default_id(Some(folder.path()), LISTEN).unwrap(), id);
        let file = folder.path().join(NAME);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(default_id(Some(other.path()), LISTEN).unwrap(), id);
        fs::write(&file, "pushdown-0\r\n").unwrap();
        assert_eq!(
            default_id(Some(folder.path()), LISTEN).unwrap().as_str(),
            "pushdown-0"
        );
    }

    #[test]
    fn a_file_without_an_id_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(NAME);
        for (bytes, expected) in [
            (&b""[..], "expected 1 to 128 characters, found 0"),
            (b"two words\n", "found ` `"),
            (b"\xff", "valid UTF-8"),
            (&[b'x'; 4096], "expected 1 to 128 characters, found 1024"),
        ] {
            fs::write(&file, bytes).unwrap();
            let error = default_id(Some(folder.path()), LISTEN).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("replica-id: "),
                "{error}"
            );
            assert!(error.ends_with("or remove it for a new one"), "{error}");
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(default_id(Some(folder.path()), LISTEN).is_err());
    }

    #[test]
    fn a_folder_that_cannot_be_written_has_no_id() {
        let folder = tempfile::tempdir().unwrap();
        // Opening the draft fails, also for root.
        fs::create_dir(folder.path().join(NEW_NAME)).unwrap();
        let id = default_id(Some(folder.path()), LISTEN).unwrap();
        assert_eq!(id, of_address(LISTEN));
    }
}
