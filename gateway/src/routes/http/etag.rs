//! The ETag of a derived answer.

use http::{HeaderMap, HeaderValue, header};
use pushdown::{Engine, engine_of, pipeline::Digest};

use super::AnswerForm;
use crate::routes::job::PipelineJob;

/// The version of the bytes in a form of the stored object: a new one if the same object and steps give other bytes.
const FORM_VERSION: u32 = 1;

/// The ETag of the value at stage `stage` in `form`, derived from the source's answer. `None` if the source has no ETag, or
/// if no runtime can run the models.
///
/// It covers everything that the bytes depend on: the source's ETag, the prefix, the engine (with the model runtime, if the
/// prefix has models), the form, that of the object with the steps that decide on it, the member of a shard, and for prefixes with random steps the seed, the epoch and the sample. The
/// ETag of streamed rows is weak, because their division into record batches may vary.
pub(in crate::routes) fn derived(
    source: &HeaderMap,
    job: &PipelineJob,
    stage: usize,
    form: AnswerForm,
) -> Option<HeaderValue> {
    let engine = engine_of(&job.pipeline.steps()[..job.dependency_steps(stage)]).ok()?;
    etag_for_engine(source, job, stage, form, &engine)
}

fn etag_for_engine(
    source: &HeaderMap,
    job: &PipelineJob,
    stage: usize,
    form: AnswerForm,
    engine: &Engine,
) -> Option<HeaderValue> {
    let source = source.get(header::ETAG)?;
    let steps = job.dependency_steps(stage);
    let prefix = job.pipeline.canonical(steps);
    let mut parts = vec![
        source.as_bytes().to_vec(),
        prefix.into_bytes(),
        stage.to_le_bytes().to_vec(),
        engine.to_string().into_bytes(),
        format!("{form:?}").into_bytes(),
    ];
    parts.extend(job.form.map(|form| format!("{form} {FORM_VERSION}").into_bytes()));
    if job.pipeline.is_random(steps) {
        parts.push(job.seed.unwrap_or_default().to_le_bytes().to_vec());
        parts.push(job.epoch.unwrap_or_default().to_le_bytes().to_vec());
        parts.push(job.sample_id.clone());
    }
    if let Some(member) = &job.member {
        parts.push(member.digest().as_bytes().to_vec());
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let weak = if matches!(form, AnswerForm::Rows(_)) {
        "W/"
    } else {
        ""
    };
    let digest = Digest::from_parts(&parts).to_string();
    HeaderValue::from_str(&format!("{weak}\"{}\"", &digest[..32])).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pushdown::{
        Pipeline,
        shard::{MemberRange, ShardFormat},
        wire::{Form, ObjectForm, Split},
    };

    use super::*;
    use crate::{cache::Prefixes, compute::Tenant, origin::ShardMember, routes::job::Sharing};

    fn etag(pipeline: &str, seed: u64, id: &str, form: Form) -> HeaderValue {
        etag_in_form(pipeline, seed, id, AnswerForm::Value(form))
    }

    fn etag_in_form(pipeline: &str, seed: u64, id: &str, form: AnswerForm) -> HeaderValue {
        let job = job(pipeline, seed, id);
        derived(&source(), &job, job.pipeline.len(), form).unwrap()
    }

    fn source() -> HeaderMap {
        HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"source\""))])
    }

    fn job(pipeline: &str, seed: u64, id: &str) -> PipelineJob {
        let pipeline = Arc::new(Pipeline::parse(pipeline).unwrap());
        PipelineJob {
            prefixes: Prefixes::new(Arc::clone(&pipeline)),
            pipeline,
            split: Split::Full,
            form: None,
            max_bytes: None,
            seed: Some(seed),
            epoch: Some(0),
            sample_id: id.into(),
            member: None,
            is_row: false,
            is_delivered: true,
            sharing: Sharing::Everything,
            position: Tenant::default().position_now(),
        }
    }

    #[test]
    fn the_etag_covers_exactly_what_the_bytes_depend_on() {
        let plain = etag("decode | resize(8, 8)", 1, "a", Form::Npy);
        assert_eq!(plain, etag("decode|resize(w=8,h=8)", 2, "b", Form::Npy));
        assert_ne!(plain, etag("decode | resize(8, 9)", 1, "a", Form::Npy));
        assert_ne!(plain, etag("decode | resize(8, 8)", 1, "a", Form::Raw));
        let random = etag("decode | flip_h", 1, "a", Form::Npy);
        assert_ne!(random, etag("decode | flip_h", 2, "a", Form::Npy));
        assert_ne!(random, etag("decode | flip_h", 1, "b", Form::Npy));
    }

    #[test]
    fn the_etag_covers_the_member_of_a_shard() {
        let etag = |name: Option<&str>, offset| {
            let member = name.map(|name| {
                let range = MemberRange::new(offset, 512, 7).unwrap();
                ShardMember::new(name, range, ShardFormat::Tar, None)
            });
            let job = PipelineJob {
                member,
                ..job("decode | resize(8, 8)", 1, "a")
            };
            derived(&source(), &job, 2, AnswerForm::Value(Form::Npy)).unwrap()
        };
        let first = etag(Some("a.jpg"), 0);
        assert_eq!(first, etag(Some("a.jpg"), 0));
        for other in [etag(None, 0), etag(Some("b.jpg"), 0), etag(Some("a.jpg"), 512)] {
            assert_ne!(first, other);
        }
    }

    /// A crop depends on the steps that follow, an object does not.
    #[test]
    fn the_etag_of_a_cropped_jpeg_covers_the_steps_that_crop() {
        let etag = |form, pipeline: &str, seed| {
            let job = PipelineJob {
                form,
                ..job(pipeline, seed, "a")
            };
            derived(&source(), &job, 0, AnswerForm::Value(Form::Encoded)).unwrap()
        };
        let (crop, fixed) = (
            "decode | random_resized_crop(224) | flip_h",
            "decode | resize(short=256) | center_crop(224)",
        );
        let form = Some(ObjectForm::CroppedJpeg);
        assert_eq!(etag(None, crop, 1), etag(None, fixed, 2));
        assert_ne!(etag(form, crop, 1), etag(None, crop, 1));
        assert_ne!(etag(form, crop, 1), etag(form, crop, 2));
        assert_ne!(etag(form, crop, 1), etag(form, fixed, 1));
        assert_eq!(etag(form, fixed, 1), etag(form, fixed, 2));
        let shorter = "decode | random_resized_crop(224)";
        assert_eq!(
            etag(form, crop, 1),
            etag(form, shorter, 1),
            "later steps do not matter"
        );
    }

    /// The last bits of features depend on the library, the provider and the CPU.
    #[test]
    fn the_etag_depends_on_the_engine() {
        let job = job("decode | resize(8, 8)", 1, "a");
        let etag = |engine: &str| {
            let form = AnswerForm::Value(Form::Npy);
            etag_for_engine(&source(), &job, 2, form, &engine.parse().unwrap()).unwrap()
        };
        let found = etag("decode=3; onnxruntime=1.24.0; provider=cpu; processor=avx2");
        assert_eq!(
            found,
            etag("decode=3; onnxruntime=1.24.0; provider=cpu; processor=avx2")
        );
        for other in [
            "decode=3",
            "decode=4; onnxruntime=1.24.0; provider=cpu; processor=avx2",
            "decode=3; onnxruntime=1.25.0; provider=cpu; processor=avx2",
            "decode=3; onnxruntime=1.24.0; provider=cuda; processor=avx2",
            "decode=3; onnxruntime=1.24.0; provider=cpu; processor=avx2+fma",
        ] {
            assert_ne!(found, etag(other), "{other:?}");
        }
    }

    /// A new version of a family that the prefix does not use changes no ETag.
    #[test]
    fn the_etag_covers_only_the_families_of_the_prefix() {
        let job = job("decode | resize(8, 8) | to_float", 1, "a");
        let form = AnswerForm::Value(Form::Npy);
        let expected = etag_for_engine(&source(), &job, 2, form, &"decode=4 resample=4".parse().unwrap());
        assert_eq!(derived(&source(), &job, 2, form), expected);
    }

    #[cfg(feature = "tables")]
    #[test]
    fn the_etag_of_rows_is_weak_and_depends_on_their_form() {
        use pushdown::wire::{Compression, TableForm};

        let rows = |compression| AnswerForm::Rows(TableForm::ArrowStream(compression));
        let plain = etag_in_form("select(columns=[a])", 1, "a", rows(Compression::None));
        assert!(plain.to_str().unwrap().starts_with("W/\""), "{plain:?}");
        assert_eq!(
            plain,
            etag_in_form("select([a])", 2, "b", rows(Compression::None)),
        );
        assert_ne!(
            plain,
            etag_in_form("select([b])", 1, "a", rows(Compression::None))
        );
        assert_ne!(plain, etag_in_form("select([a])", 1, "a", rows(Compression::Lz4)));
    }
}
