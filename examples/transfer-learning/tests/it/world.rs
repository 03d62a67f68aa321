//! A gateway on the embedded store with objects, and the program.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use pushdown::{Context, Pipeline, Sample};
use pushdown_testkit::{Gateway, Keys, Payload, Request, find_gateway};
use tempfile::TempDir;

const BUCKET: &str = "photos";
const ACCESS_KEY: &str = "pushdowntestkey";
const SECRET_KEY: &str = "pushdowntestsecret";

/// Objects by key.
pub(super) type Objects = BTreeMap<String, Vec<u8>>;

/// A gateway with objects, and a folder for the files of a test.
pub(super) struct World {
    pub(super) gateway: Gateway,
    pub(super) objects: Objects,
    folder: TempDir,
}

/// The program with a clean environment: no endpoint, and the credentials of the tests.
pub(super) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_transfer-learning"));
    command.env_clear().args(arguments);
    command
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    command
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    command
}

/// What a program wrote.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Valid photos with at least 40 pixels on each side.
pub(super) fn photos() -> Objects {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testkit/fixtures/photos");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let photos: Objects = files
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .filter(|(_, bytes)| match run("decode", bytes) {
            Ok(Sample::Image(image)) => image.width().min(image.height()) >= 40,
            _ => false,
        })
        .collect();
    assert!(photos.len() >= 20, "{}", photos.len());
    photos
}

/// Runs a pipeline on an object in this process.
fn run(pipeline: &str, object: &[u8]) -> pushdown::Result<Sample> {
    let pipeline = Pipeline::parse(pipeline)?;
    let object = Sample::Bytes(object.to_vec().into());
    pipeline.run(0..pipeline.len(), object, &Context::new(b""))
}

/// Lines of `key,label`, with keys relative to `set/`: the brighter half of the photos is positive.
pub(super) fn brightness_labels(objects: &Objects) -> String {
    let mut all: Vec<(&str, f64)> = objects
        .iter()
        .filter(|(key, _)| !key.contains("unlabelled"))
        .map(|(key, bytes)| (key.trim_start_matches("set/"), brightness(bytes)))
        .collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let threshold = all[all.len() / 2].1;
    let line = |(key, brightness): &(&str, f64)| {
        format!("{key},{}\n", if *brightness >= threshold { 0.7 } else { 0.2 })
    };
    format!(
        "key,label\n{}gone.png,0.9\n",
        all.iter().map(line).collect::<String>()
    )
}

/// The mean brightness of a photo, from 0 to 1.
fn brightness(photo: &[u8]) -> f64 {
    match run("decode | resize(1, 1)", photo) {
        Ok(Sample::Image(pixel)) => pixel.pixels().iter().copied().map(f64::from).sum::<f64>() / 765.0,
        other => panic!("{other:?}"),
    }
}

impl World {
    /// Launches a gateway with these flags, whose bucket has these objects.
    pub(super) fn new(objects: Objects, flags: &[String]) -> Self {
        let keys = Keys::new(ACCESS_KEY, SECRET_KEY);
        let gateway = Gateway::embedded(&find_gateway().unwrap(), &keys, flags).unwrap();
        let world = Self {
            gateway,
            objects,
            folder: tempfile::tempdir().unwrap(),
        };
        world.put(&keys, &format!("/{BUCKET}"), &[]);
        for (key, bytes) in &world.objects {
            world.put(&keys, &format!("/{BUCKET}/{key}"), bytes);
        }
        world
    }

    /// A folder for the files of a test.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program on the objects under `set/` with these lines as labels.
    pub(super) fn program(&self, labels: &str, arguments: &[&str]) -> Command {
        let file = self.folder().join("labels.csv");
        fs::write(&file, labels).unwrap();
        let data = ["s3://photos/set/", "--labels", file.to_str().unwrap()];
        let mut command = program(&[&data[..], arguments].concat());
        command.env("PUSHDOWN_ENDPOINT", format!("http://{}", self.gateway.listen()));
        command
    }

    fn put(&self, keys: &Keys, target: &str, body: &[u8]) {
        let listen = self.gateway.listen();
        let request = Request::new("PUT", target)
            .header("Host", &listen.to_string())
            .body(body);
        let signed = keys.sign(request, Payload::Signed).unwrap();
        let answer = signed.send(listen).unwrap();
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    }
}
