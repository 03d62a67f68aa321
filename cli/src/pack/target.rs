//! Where shards are written.

use std::{
    fmt, fs,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::Context as _;
use pushdown::shard::ShardFormat;
use pushdown_client::{
    internal::{Draft, Upload},
    store::{HiddenObjects, Store},
};

use crate::{
    connection::Connection,
    errors::{PipelineError, Usage},
    location::Location,
};

/// The most digits of a number.
const MAX_DIGITS: usize = 18;

/// Paths or keys with a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// `None` for files.
    bucket: Option<String>,
    before: String,
    digits: usize,
    after: String,
}

/// A target that can be written.
pub(super) struct Shards {
    target: Target,
    /// `None` for files.
    store: Option<Store>,
}

/// A shard that is written.
pub(super) enum Output {
    File { draft: Draft, path: PathBuf },
    Object(Upload),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (bucket, path) = if text.starts_with("s3://") {
            let Location { bucket, key } = text.parse()?;
            (Some(bucket), key)
        } else {
            (None, text.to_owned())
        };
        let expected = "expected `%06d`, or another number of digits, once and followed by `.tar` at the end";
        let (before, rest) = path.split_once('%').ok_or(expected)?;
        let (width, after) = rest.split_once('d').ok_or(expected)?;
        let digits = match width {
            "" => Some(0),
            _ if width.starts_with('0') => width.parse().ok().filter(|digits| *digits <= MAX_DIGITS),
            _ => None,
        };
        let digits = digits.ok_or(expected)?;
        if after.contains('%') || ShardFormat::from_key(after) != Some(ShardFormat::Tar) {
            return Err(expected.to_owned());
        }
        if bucket.is_none() && after.contains('/') {
            return Err("expected the number in the name of the file".to_owned());
        }
        Ok(Self {
            bucket,
            before: before.to_owned(),
            digits,
            after: after.to_owned(),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            before,
            digits,
            after,
            ..
        } = self;
        if let Some(bucket) = &self.bucket {
            write!(f, "s3://{bucket}/")?;
        }
        match digits {
            0 => write!(f, "{before}%d{after}"),
            _ => write!(f, "{before}%0{digits}d{after}"),
        }
    }
}

impl Target {
    pub(super) async fn open(&self, connection: &Connection) -> anyhow::Result<Shards> {
        let store = if self.bucket.is_some() {
            let store = connection.store().build().await;
            Some(store.map_err(|error| PipelineError::wrap("", error))?)
        } else {
            None
        };
        Ok(Shards {
            target: self.clone(),
            store,
        })
    }

    /// The path or key of a shard.
    fn path(&self, number: usize) -> String {
        format!(
            "{}{number:0digits$}{}",
            self.before,
            self.after,
            digits = self.digits
        )
    }

    /// Whether a path or key is one of these shards.
    fn contains(&self, path: &str) -> bool {
        let number = path.strip_prefix(&*self.before);
        let number = number.and_then(|rest| rest.strip_suffix(&*self.after));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// The folder of files.
    fn folder(&self) -> &str {
        let end = self.before.rfind('/').map_or(0, |slash| slash + 1);
        &self.before[..end]
    }
}

impl Shards {
    /// Checks that no shard exists: with shards of an earlier run the data set would be wrong.
    pub(super) async fn check_is_new(&self) -> anyhow::Result<()> {
        let target = &self.target;
        let found = match (&self.store, &target.bucket) {
            (Some(store), Some(bucket)) => {
                let listed = store
                    .list_objects_with(bucket, &target.before, HiddenObjects::Listed, |_| ())
                    .await;
                let listed = listed.map_err(|error| PipelineError::wrap("", error))?;
                let found = listed.iter().find(|object| target.contains(object.key));
                found.map(|object| format!("s3://{bucket}/{}", object.key))
            }
            _ => self.existing_file()?,
        };
        match found {
            Some(found) => {
                let text = format!("found {found}, expected no shard {target}: remove it, or name others");
                Err(Usage(text).into())
            }
            None => Ok(()),
        }
    }

    /// A file that is one of the shards.
    fn existing_file(&self) -> anyhow::Result<Option<String>> {
        let folder = self.target.folder();
        let path = Path::new(if folder.is_empty() { "." } else { folder });
        let cannot_read = || format!("cannot read {}", path.display());
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            entries => entries.with_context(cannot_read)?,
        };
        for entry in entries {
            let name = entry.with_context(cannot_read)?.file_name();
            let file = format!("{folder}{}", name.to_string_lossy());
            if self.target.contains(&file) {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Begins to write a shard.
    pub(super) fn create(&self, number: usize) -> anyhow::Result<Output> {
        let path = self.target.path(number);
        if let (Some(store), Some(bucket)) = (&self.store, &self.target.bucket) {
            return Ok(Output::Object(store.upload(bucket, &path)));
        }
        let draft = fs::create_dir_all(self.target.folder()).and_then(|()| Draft::create(&path));
        let draft = draft.with_context(|| format!("cannot write {path}"))?;
        let path = path.into();
        Ok(Output::File { draft, path })
    }
}

impl Output {
    pub(super) async fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::File { draft, path } => draft
                .write_all(bytes)
                .with_context(|| format!("cannot write {}", path.display())),
            Self::Object(upload) => Ok(upload.write(bytes).await?),
        }
    }

    /// Makes the shard visible, or leaves nothing of it.
    pub(super) async fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::File { draft, path } => draft
                .finish()
                .with_context(|| format!("cannot write {}", path.display())),
            Self::Object(upload) => Ok(upload.finish().await?),
        }
    }

    /// Leaves nothing of the shard.
    pub(super) async fn discard(self) {
        match self {
            Self::File { draft, .. } => drop(draft),
            // The error before says more.
            Self::Object(upload) => drop(upload.abort().await),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_one_number() {
        for (text, first) in [
            ("train-%06d.tar", "train-000000.tar"),
            ("out/a b/%d.tar", "out/a b/0.tar"),
            ("s3://b/x/%03d/t.tar", "x/000/t.tar"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(
                (target.to_string(), target.path(0)),
                (text.to_owned(), first.to_owned())
            );
            assert!(target.contains(first) && target.contains(&target.path(1_234_567)));
            assert!(!target.contains("other.tar"));
        }
        for text in [
            "train.tar",
            "train-%06d",
            "train-%06d.zip",
            "%6d.tar",
            "%x.tar",
            "%06d-%d.tar",
            "%019d.tar",
            "%06d/train.tar",
            "s3://",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
