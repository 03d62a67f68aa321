//! The ETag of a derived answer.

use http::{HeaderMap, HeaderValue, header};
use pushdown::{Engine, pipeline::Digest};

use super::{form::AnswerForm, request::Job};

/// The ETag of the value of stage `stage` in `form`, from the source's answer. `None` where the source has none, or
/// nothing runs the models.
///
/// Everything that the bytes depend on is in it: the source, the prefix, the engine, which for models tells what runs them,
/// the form, and for random prefixes seed, epoch and sample. That of rows that flow is weak: how they are cut into record
/// batches is no part of the value.
pub(super) fn derived(source: &HeaderMap, job: &Job, stage: usize, form: AnswerForm) -> Option<HeaderValue> {
    let engine = Engine::for_steps(&job.pipeline.steps()[..stage]).ok()?;
    by_engine(source, job, stage, form, &engine)
}

fn by_engine(
    source: &HeaderMap,
    job: &Job,
    stage: usize,
    form: AnswerForm,
    engine: &Engine,
) -> Option<HeaderValue> {
    let source = source.get(header::ETAG)?;
    let prefix = job.pipeline.canonical(stage);
    let mut parts = vec![
        source.as_bytes().to_vec(),
        prefix.into_bytes(),
        stage.to_le_bytes().to_vec(),
        engine.to_string().into_bytes(),
        format!("{form:?}").into_bytes(),
    ];
    if job.pipeline.is_random(stage) {
        parts.push(job.seed.unwrap_or_default().to_le_bytes().to_vec());
        parts.push(job.epoch.unwrap_or_default().to_le_bytes().to_vec());
        parts.push(job.sample_id.clone());
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
        wire::{Compression, Form, Split, TableForm},
    };

    use super::*;
    use crate::compute::Tenant;

    fn etag(pipeline: &str, seed: u64, id: &str, form: Form) -> HeaderValue {
        of_form(pipeline, seed, id, AnswerForm::Value(form))
    }

    fn of_form(pipeline: &str, seed: u64, id: &str, form: AnswerForm) -> HeaderValue {
        let job = job(pipeline, seed, id);
        derived(&source(), &job, job.pipeline.len(), form).unwrap()
    }

    fn source() -> HeaderMap {
        HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"source\""))])
    }

    fn job(pipeline: &str, seed: u64, id: &str) -> Job {
        let pipeline = Arc::new(Pipeline::parse(pipeline).unwrap());
        Job {
            pipeline,
            split: Split::Full,
            max_bytes: None,
            seed: Some(seed),
            epoch: Some(0),
            sample_id: id.into(),
            standing: Tenant::default().now(),
        }
    }

    #[test]
    fn changes_with_what_the_bytes_depend_on_and_with_nothing_else() {
        let plain = etag("decode | resize(8, 8)", 1, "a", Form::Npy);
        assert_eq!(plain, etag("decode|resize(w=8,h=8)", 2, "b", Form::Npy));
        assert_ne!(plain, etag("decode | resize(8, 9)", 1, "a", Form::Npy));
        assert_ne!(plain, etag("decode | resize(8, 8)", 1, "a", Form::Raw));
        let random = etag("decode | flip_h", 1, "a", Form::Npy);
        assert_ne!(random, etag("decode | flip_h", 2, "a", Form::Npy));
        assert_ne!(random, etag("decode | flip_h", 1, "b", Form::Npy));
    }

    /// The last bits of features depend on the library, the provider and the processor.
    #[test]
    fn another_engine_gives_another_etag() {
        let job = job("decode | resize(8, 8)", 1, "a");
        let etag = |engine: &str| {
            let form = AnswerForm::Value(Form::Npy);
            by_engine(&source(), &job, 2, form, &engine.parse().unwrap()).unwrap()
        };
        let found = etag("3; onnxruntime=1.24.0; provider=cpu; processor=avx2");
        assert_eq!(found, etag("3; onnxruntime=1.24.0; provider=cpu; processor=avx2"));
        for other in [
            "3",
            "4; onnxruntime=1.24.0; provider=cpu; processor=avx2",
            "3; onnxruntime=1.25.0; provider=cpu; processor=avx2",
            "3; onnxruntime=1.24.0; provider=cuda; processor=avx2",
            "3; onnxruntime=1.24.0; provider=cpu; processor=avx2+fma",
        ] {
            assert_ne!(found, etag(other), "{other:?}");
        }
    }

    #[test]
    fn that_of_rows_is_weak_and_depends_on_their_form() {
        let rows = |compression| AnswerForm::Rows(TableForm::ArrowStream(compression));
        let plain = of_form("select(columns=[a])", 1, "a", rows(Compression::None));
        assert!(plain.to_str().unwrap().starts_with("W/\""), "{plain:?}");
        assert_eq!(plain, of_form("select([a])", 2, "b", rows(Compression::None)),);
        assert_ne!(plain, of_form("select([b])", 1, "a", rows(Compression::None)));
        assert_ne!(plain, of_form("select([a])", 1, "a", rows(Compression::Lz4)));
    }
}
