//! Objects as cropped JPEGs: those of which a pipeline reads a part.

use anyhow::{Context as _, Result, ensure};
use pushdown::{
    Context, CroppedJpeg, Limits, Pipeline, Sample,
    wire::{BatchRequest, ObjectForm, Split},
};
use pushdown_testkit::Response;

use super::{Lab, batch, expected, photo};

const RANDOM: &str = "decode | random_resized_crop(64) | flip_h";
const FIXED: &str = "decode | resize(short=64) | center_crop(48)";
const FORM: (&str, &str) = ("x-pushdown-form", "cropped-jpeg");
const OBJECT: (&str, &str) = ("x-pushdown-split", "0");

/// A context with the seed and the epoch of all requests here.
fn context(key: &str) -> Context<'_> {
    Context {
        seed: Some(7),
        epoch: Some(3),
        ..Context::new(key.as_bytes())
    }
}

/// The result of a pipeline, from an object or a part of it.
fn result(pipeline: &str, sample: Sample, key: &str) -> Result<Sample> {
    let pipeline = Pipeline::parse(pipeline)?;
    Ok(pipeline.run(0..pipeline.len(), sample, &context(key))?)
}

fn get(lab: &Lab, key: &str, pipeline: &str, headers: &[(&str, &str)]) -> Result<Response> {
    let seeded = [("x-pushdown-seed", "7"), ("x-pushdown-epoch", "3"), OBJECT, FORM];
    lab.get(key, pipeline, &[&seeded, headers].concat())
}

/// The cropped JPEG of an answer.
fn crop(answer: &Response) -> Result<CroppedJpeg> {
    ensure!(answer.status == 200, "{}", answer.text());
    let content_type = answer
        .header("content-type")
        .context("no content type")?
        .to_owned();
    let body = answer.body.clone().into();
    let header = |name: &str| answer.header(name);
    match pushdown::wire::decode(&content_type, header, body, &Limits::default())? {
        Sample::CroppedJpeg(crop) => Ok(crop),
        other => anyhow::bail!("expected a cropped JPEG, found {other:?}"),
    }
}

#[test]
fn a_get_returns_the_blocks_that_the_pipeline_reads() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(400, 300, "jpeg, quality=90");
    lab.put("cat.jpg", object.clone())?;
    for pipeline in [RANDOM, FIXED] {
        let answer = get(&lab, "cat.jpg", pipeline, &[])?;
        assert_eq!(answer.header("x-pushdown-stage"), Some("0"));
        assert_eq!(answer.header("x-pushdown-form"), Some("cropped-jpeg"));
        assert_eq!(answer.header("x-pushdown-image-width"), Some("400"));
        let timing = answer.header("server-timing").unwrap_or_default();
        assert!(timing.contains("cropped-jpeg;dur="), "{timing}");
        let engine = answer.header("x-pushdown-engine").unwrap_or_default();
        assert!(
            engine.contains("decode=") && engine.contains("resample="),
            "{engine}"
        );
        assert_eq!(engine.contains("random="), pipeline == RANDOM, "{engine}");
        let crop = crop(&answer)?;
        assert!(
            crop.bytes().len() < object.len(),
            "{} of {}",
            crop.bytes().len(),
            object.len()
        );
        let found = result(pipeline, Sample::CroppedJpeg(crop), "cat.jpg")?;
        let whole = Sample::Bytes(object.clone().into());
        assert_eq!(found, result(pipeline, whole, "cat.jpg")?, "{pipeline}");
    }
    Ok(())
}

#[test]
fn a_cropped_jpeg_has_its_own_etag() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(400, 300, "jpeg, quality=90"))?;
    let etag = |headers: &[(&str, &str)]| -> Result<String> {
        let answer = lab.get("cat.jpg", RANDOM, headers)?;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(answer.header("etag").context("no ETag")?.to_owned())
    };
    let seed = [("x-pushdown-seed", "7"), ("x-pushdown-epoch", "3")];
    let other_epoch = [("x-pushdown-seed", "7"), ("x-pushdown-epoch", "4")];
    let cropped = etag(&[seed[0], seed[1], OBJECT, FORM])?;
    assert_ne!(cropped, etag(&[other_epoch[0], other_epoch[1], OBJECT, FORM])?);
    assert_ne!(cropped, etag(&[OBJECT])?);
    let unchanged = get(&lab, "cat.jpg", RANDOM, &[("if-none-match", &cropped)])?;
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    Ok(())
}

/// What has no such form, or gains nothing by it.
#[test]
fn other_objects_are_sent_as_they_are() -> Result<()> {
    let lab = Lab::new(&[])?;
    let jpeg = photo(400, 300, "jpeg, quality=90");
    let objects = [
        ("image.png", photo(400, 300, "png"), RANDOM),
        ("text.txt", b"no image".to_vec(), RANDOM),
        ("cut.jpg", jpeg[..jpeg.len() / 2].to_vec(), FIXED),
        ("whole.jpg", jpeg, "decode | to_float"),
        ("huge.jpg", huge(), RANDOM),
    ];
    for (key, object, pipeline) in objects {
        lab.put(key, object.clone())?;
        let answer = get(&lab, key, pipeline, &[])?;
        assert_eq!(
            (answer.status, answer.header("x-pushdown-form")),
            (200, None),
            "{key}"
        );
        assert_eq!(answer.body, object, "{key}");
    }
    Ok(())
}

/// The head of a JPEG of more pixels than the gateway decodes: no memory is to be reserved for them.
fn huge() -> Vec<u8> {
    let frame = [
        &[0xff, 0xd8, 0xff, 0xc0, 0, 17, 8][..],
        &37_000_u16.to_be_bytes(),
        &37_000_u16.to_be_bytes(),
        &[3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0],
        &[0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0],
    ];
    frame.concat()
}

#[test]
fn invalid_requests_for_a_form_are_refused() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(400, 300, "jpeg, quality=90"))?;
    for (headers, status, expected) in [
        (
            &[("x-pushdown-form", "cropped-png"), OBJECT][..],
            400,
            "expected cropped-jpeg",
        ),
        (
            &[FORM, ("x-pushdown-split", "1")],
            400,
            "for the split 0 only, found 1",
        ),
        (&[FORM], 400, "for the split 0 only, found full"),
        (&[FORM, OBJECT], 400, "seed"),
    ] {
        let answer = lab.get("cat.jpg", RANDOM, headers)?;
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text());
        assert!(answer.text().contains(expected), "{headers:?}: {}", answer.text());
    }
    Ok(())
}

/// A batch of `keys` at the stage 0, every second sample as a cropped JPEG.
fn mixed(lab: &Lab, pipeline: &str, keys: &[String]) -> Result<BatchRequest> {
    let mut request = batch::request(lab, pipeline.parse()?, keys)?;
    (request.seed, request.epoch) = (Some(7), Some(3));
    for (index, sample) in request.samples.iter_mut().enumerate() {
        sample.split = Some(Split::At(0));
        sample.form = (index % 2 == 0).then_some(ObjectForm::CroppedJpeg);
    }
    Ok(request)
}

#[test]
fn a_batch_mixes_whole_and_cropped_objects() -> Result<()> {
    let lab = Lab::new(&[])?;
    let keys: Vec<String> = (0..6).map(|number| format!("{number}.jpg")).collect();
    let object = photo(400, 300, "jpeg, quality=90");
    for key in &keys[..5] {
        lab.put(key, object.clone())?;
    }
    for pipeline in [RANDOM, FIXED] {
        let rows = batch::rows(batch::send(&lab, &mixed(&lab, pipeline, &keys)?)?)?;
        assert_eq!(rows.len(), keys.len());
        let mut crops = 0;
        for (index, row) in rows.into_iter().enumerate() {
            if index == 5 {
                assert_eq!(row.value.unwrap_err().code, "NoSuchKey");
                continue;
            }
            let value = row.value?;
            // Where nearly the whole is needed, it is sent.
            let is_cropped = matches!(value, Sample::CroppedJpeg(_));
            let is_requested = index % 2 == 0;
            assert!(is_requested || !is_cropped, "{index}");
            assert_eq!((row.stage, row.seconds > 0.0), (0, is_requested), "{index}");
            crops += u32::from(is_cropped);
            let whole = Sample::Bytes(object.clone().into());
            assert_eq!(
                result(pipeline, value, &keys[index])?,
                result(pipeline, whole, &keys[index])?,
                "{pipeline}, {index}"
            );
        }
        assert!(crops > 0, "{pipeline}");
    }
    Ok(())
}

#[test]
fn a_form_at_another_stage_is_refused() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(400, 300, "jpeg, quality=90"))?;
    let mut request = mixed(&lab, RANDOM, &["cat.jpg".to_owned()])?;
    request.samples[0].split = None;
    let answer = batch::send(&lab, &request)?;
    assert_eq!(answer.status, 400);
    let expected = "sample 0: unexpected form `cropped-jpeg`: expected it for the split 0 only, found full";
    assert!(answer.text().contains(expected), "{}", answer.text());
    Ok(())
}

/// A part of an object is nobody's value of it.
#[test]
fn the_result_cache_has_no_cropped_jpegs() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let flag = format!("--cache-dir={}", folder.path().display());
    let lab = Lab::new(&[&flag, "--cache-disk=128MiB", "--cache-memory=64MiB"])?;
    let object = photo(400, 300, "jpeg, quality=90");
    lab.put("cat.jpg", object.clone())?;
    for _ in 0..3 {
        let answer = get(&lab, "cat.jpg", FIXED, &[])?;
        assert_eq!(answer.header("x-pushdown-cache"), Some("computed"));
        assert!(crop(&answer)?.bytes().len() < object.len());
        let stored = lab.get("cat.jpg", FIXED, &[OBJECT])?;
        assert_eq!(stored.body, object);
        let value = lab.get("cat.jpg", FIXED, &[("accept", "application/octet-stream")])?;
        assert_eq!(value.body, super::pixels(expected(&object, FIXED)));
    }
    Ok(())
}
