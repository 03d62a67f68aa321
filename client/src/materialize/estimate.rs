//! How many samples are in a part, and what a run will write: by a trial of a few samples.

use pushdown::wire::MAX_REQUEST_BYTES;

use super::{
    data_set::DataSet,
    layout::Layout,
    maker::{Made, Maker, PartJob},
    target::Target,
};
use crate::{
    error::{Error, ErrorKind, Result},
    store::Store,
};

/// How often a part is made whose objects were replaced meanwhile.
pub(super) const MAX_CHANGES: usize = 3;
/// Samples of a trial.
const TRIAL_SAMPLES: usize = 16;
/// The most samples of a part: the gateway's default limit on a batch.
pub(super) const MAX_SAMPLES: u32 = 4096;
/// Bytes of a part.
const PART_BYTES: f64 = (256 << 20) as f64;
/// The longest time of a part in seconds: its signatures are valid for longer.
const PART_SECONDS: f64 = 300.0;
/// A part may be this much larger, or slower, than its trial says.
const MARGIN: f64 = 2.0;
/// Bytes of a request apart from its samples: the pipeline, the signing parameters, names of classes.
const REQUEST_HEAD_BYTES: usize = 1 << 20;
/// Bytes of a sample in a request apart from its names, its ETag and its label.
const SAMPLE_FRAME_BYTES: usize = 256;

/// What a run will write.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Samples of the data set.
    pub samples: u64,
    /// Samples of each part.
    pub samples_per_part: u32,
    /// Parts of the target.
    pub parts: u64,
    /// Parts that are there already.
    pub parts_done: u64,
    /// Bytes of the parts that are missing.
    pub bytes: u64,
    /// CPU time of the steps of the parts that are missing, in seconds.
    pub cpu_seconds: f64,
    /// Time of the run in seconds, if steps are its limit.
    pub seconds: f64,
}

/// What a trial has shown.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    /// The engine that computed it.
    pub(super) engine: String,
    pub(super) bytes_per_sample: f64,
    /// CPU time in seconds.
    pub(super) seconds_per_sample: f64,
    pub(super) cores: f64,
    max_part_bytes: f64,
}

impl Trial {
    /// Makes a part of a few samples, and writes nothing.
    ///
    /// # Errors
    /// If it cannot be made, or has no sample.
    pub(super) async fn run(
        store: &Store,
        maker: &Maker,
        target: &Target,
        data_set: &DataSet,
        layout: &Layout,
    ) -> Result<Self> {
        let spread = layout.spread(TRIAL_SAMPLES);
        for _ in 0..MAX_CHANGES {
            if let Some(trial) = Self::attempt(store, maker, target, data_set, &spread).await? {
                return Ok(trial);
            }
        }
        Err(Error::new(
            ErrorKind::Sample,
            format!("cannot make a trial: its objects were replaced {MAX_CHANGES} times while it was made"),
        ))
    }

    /// A trial of these samples; `None` if they have been listed again.
    async fn attempt(
        store: &Store,
        maker: &Maker,
        target: &Target,
        data_set: &DataSet,
        spread: &[u32],
    ) -> Result<Option<Self>> {
        let samples = data_set.current(spread);
        let job = PartJob {
            samples: &samples,
            name: None,
            engine: None,
        };
        let (made, engine) = maker.make(&job, &|_| ()).await?;
        let written = match made {
            Made::Written(written) => written,
            Made::Changed(errors) => {
                data_set.list_again(store, job.failed_samples(&errors)).await?;
                return Ok(None);
            }
            Made::Refused(refused) => return Err(job.refusal(&refused, target)),
        };
        if written.samples == 0 {
            let sample = job.failed_samples(&written.errors).next();
            let (name, why) = (
                sample.map_or("", |sample| sample.object.key),
                written.errors.first().map_or("", |error| &error.message),
            );
            let text = format!(
                "none of {} samples of a trial has a value: {name}: {why}",
                samples.len()
            );
            return Err(Error::new(ErrorKind::Sample, text));
        }
        let limit = maker.max_part_bytes().await?;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let (bytes, max_part_bytes) = (
            written.bytes as f64,
            limit.map_or(f64::INFINITY, |limit| limit as f64),
        );
        let count = f64::from(written.samples);
        Ok(Some(Self {
            engine,
            bytes_per_sample: bytes / count,
            seconds_per_sample: written.seconds / count,
            cores: maker.cores().await?,
            max_part_bytes,
        }))
    }

    /// Samples of a part: a power of two, so that runs with about equal trials have equal parts.
    pub(super) fn samples_per_part(&self, data_set: &DataSet) -> u32 {
        let by_bytes = PART_BYTES.min(self.max_part_bytes / MARGIN) / self.bytes_per_sample.max(1.0);
        let by_time = PART_SECONDS * self.cores / (MARGIN * self.seconds_per_sample.max(1e-9));
        let most = f64::from(MAX_SAMPLES).min(by_bytes).min(by_time).max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "1 to 4,096"
        )]
        let most = most as u32;
        let power = 1 << most.ilog2();
        power.min(max_samples(data_set))
    }
}

/// The most samples of which a request has room for the names.
pub(super) fn max_samples(data_set: &DataSet) -> u32 {
    let objects = &data_set.objects;
    let bytes = |index: usize| {
        let object = objects.object(index);
        let columns = (0..objects.columns().len()).filter_map(|column| objects.column_member(index, column));
        let members = columns
            .chain(object.member)
            .map(|member| 6 * member.name.len() + SAMPLE_FRAME_BYTES);
        let label = match data_set.label(u32::try_from(index).unwrap_or(u32::MAX)) {
            Some(pushdown::part::Label::Text(text)) => 6 * text.len(),
            _ => 24,
        };
        3 * object.key.len() + 2 * object.etag.map_or(0, str::len) + label + members.sum::<usize>()
    };
    let longest = (0..objects.len()).map(bytes).max().unwrap_or_default();
    let room = MAX_REQUEST_BYTES - REQUEST_HEAD_BYTES;
    let samples = room / (longest + SAMPLE_FRAME_BYTES + 3 * objects.bucket().len());
    u32::try_from(samples)
        .unwrap_or(MAX_SAMPLES)
        .clamp(1, MAX_SAMPLES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Object, Objects};

    fn data_set(key: &str) -> DataSet {
        let object = Object {
            key,
            bytes: Some(1),
            etag: Some("\"1\""),
            member: None,
        };
        DataSet::new(Objects::from_objects("b", [object]), None, "").unwrap()
    }

    fn trial(bytes_per_sample: f64, seconds_per_sample: f64) -> Trial {
        Trial {
            engine: String::new(),
            bytes_per_sample,
            seconds_per_sample,
            cores: 2.0,
            max_part_bytes: 128.0 * 1024.0 * 1024.0,
        }
    }

    #[test]
    fn parts_fit_into_their_limits() {
        let data_set = data_set("a.jpg");
        for (bytes, seconds, expected) in [
            // The most samples of a batch.
            (2_500.0, 0.01, 4096),
            // 64 MiB, half of the gateway's limit.
            (100_000.0, 0.01, 512),
            // 5 minutes of 2 cores, with a margin of 2.
            (2_500.0, 1.0, 256),
            (1e12, 1e9, 1),
        ] {
            assert_eq!(
                trial(bytes, seconds).samples_per_part(&data_set),
                expected,
                "{bytes} {seconds}"
            );
        }
    }

    #[test]
    fn long_names_make_smaller_parts() {
        assert_eq!(max_samples(&data_set("a.jpg")), 4096);
        let samples = max_samples(&data_set(&"\u{e9}".repeat(500)));
        assert!((500..1500).contains(&samples), "{samples}");
    }
}
