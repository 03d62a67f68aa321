//! A gateway on the embedded store with objects.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use tempfile::TempDir;

use crate::{
    gateway::{Gateway, find_gateway},
    raw::Request,
    sign::{Keys, Payload},
};

/// The bucket of a [`World`].
pub const BUCKET: &str = "photos";
/// The access key of a [`World`].
pub const ACCESS_KEY: &str = "pushdowntestkey";
/// The secret key of a [`World`].
pub const SECRET_KEY: &str = "pushdowntestsecret";

/// Parts of the names of fixtures that do not decode, or have fewer than 40 pixels on a side.
const UNSUITABLE: [&str; 6] = [
    "_exif_",
    "_half.",
    "_no_end.",
    "_one_pixel.",
    "_one_row.",
    "tiff_cmyk.",
];

/// Objects by key.
pub type Objects = BTreeMap<String, Vec<u8>>;

/// Valid photos in many formats, with at least 40 pixels on each side, so that they can be cropped.
pub fn photos() -> Result<Objects> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/photos");
    let mut photos = Objects::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "README.md" && !UNSUITABLE.iter().any(|part| name.contains(part)) {
            photos.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(photos)
}

/// A gateway whose store has objects in one bucket. The store survives a restart of the gateway.
#[derive(Debug)]
pub struct World {
    /// The gateway.
    pub gateway: Gateway,
    /// The objects that the bucket had at the start.
    pub objects: Objects,
    folder: TempDir,
}

impl World {
    /// Launches a gateway whose bucket has these objects.
    pub fn with_objects(objects: Objects) -> Result<Self> {
        Self::with_flags(objects, &[])
    }

    /// Launches a gateway with additional flags.
    pub fn with_flags(objects: Objects, flags: &[String]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let gateway = launch(folder.path(), listen, flags)?;
        let world = Self {
            gateway,
            objects,
            folder,
        };
        world.put("", &[])?;
        for (key, bytes) in &world.objects {
            world.put(key, bytes)?;
        }
        Ok(world)
    }

    /// Launches a gateway with the first `count` photos.
    pub fn with_photos(count: usize) -> Result<Self> {
        Self::with_objects(photos()?.into_iter().take(count).collect())
    }

    /// The URL of the gateway.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.gateway.listen())
    }

    /// A folder for the files of a test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stores an object; with an empty key it creates the bucket.
    pub fn put(&self, key: &str, body: &[u8]) -> Result<()> {
        let path = key
            .replace(' ', "%20")
            .replace('+', "%2B")
            .replace('\u{e9}', "%C3%A9");
        let target = format!("/{BUCKET}{}{path}", if key.is_empty() { "" } else { "/" });
        let listen = self.gateway.listen();
        let request = Request::new("PUT", &target)
            .header("Host", &listen.to_string())
            .body(body);
        let keys = Keys::new(ACCESS_KEY, SECRET_KEY);
        let answer = keys.sign(request, Payload::Signed)?.send(listen)?;
        ensure!(answer.status == 200, "{key}: {}", answer.text());
        Ok(())
    }

    /// Kills the gateway, waits for `pause`, and starts it again at the same address, without additional flags.
    pub fn restart(self, pause: Duration) -> Result<Self> {
        let Self {
            gateway,
            objects,
            folder,
        } = self;
        let listen = gateway.listen();
        drop(gateway);
        thread::sleep(pause);
        Ok(Self {
            gateway: launch(folder.path(), listen, &[])?,
            objects,
            folder,
        })
    }
}

fn launch(folder: &Path, listen: SocketAddr, extra_flags: &[String]) -> Result<Gateway> {
    let flags = [
        format!("--store={}", folder.join("store").display()),
        format!("--access-key={ACCESS_KEY}"),
        format!("--secret-key={SECRET_KEY}"),
        format!("--listen={listen}"),
    ];
    Gateway::launch(&find_gateway()?, flags.iter().chain(extra_flags))
}
