//! Cropped JPEGs: their CPU time beside that of libjpeg-turbo's own parts, and their bytes by pipeline.

use std::path::Path;

use anyhow::{Result, bail};
use bytes::Bytes;
use pushdown::{Context, CroppedJpeg, Pipeline, Sample};
use turbojpeg::{OutputBuf, Transform, Transformer};

use crate::cpu::CpuClock;
use crate::operators::bare_decoding_contender;
use crate::photos::{SMALL, count, mean_kilobytes, read_all};
use crate::progress::report;
use crate::report::{Table, Target};
use crate::rounds::{Contender, run_rounds};

const DECODING: &str = "libjpeg-turbo, decode alone";
const CODING: &str = "libjpeg-turbo, entropy decoding and encoding of the whole";

/// A crop, next to a bound of the share of the blocks that its pipeline reads of photos of 500 x 375.
struct Case {
    name: &'static str,
    pipeline: &'static str,
    max_share: f64,
}

const CASES: [Case; 2] = [
    Case {
        name: "cropped for `decode | random_resized_crop(224)`",
        pipeline: "decode | random_resized_crop(224)",
        max_share: 0.48,
    },
    Case {
        name: "cropped for `decode | resize(short=256) | center_crop(224)`",
        pipeline: "decode | resize(short=256) | center_crop(224)",
        max_share: 0.64,
    },
];

/// The most bytes of a crop over its share: a crop also has headers and tables.
const MAX_BYTES_PER_SHARE: f64 = 1.2;

/// Returns two tables: photos per CPU second, and KB per photo.
pub fn run(photos: &Path, rounds: u32) -> Result<Vec<Table>> {
    let files = read_all(&photos.join(SMALL))?;
    report(&format!("cropped JPEGs, {} photos per round", files.len()));
    Ok(vec![compare_cpu(&files, rounds)?, compare_bytes(&files)?])
}

fn compare_cpu(files: &[Bytes], rounds: u32) -> Result<Table> {
    let mut contenders = vec![
        bare_decoding_contender(DECODING, files)?,
        coding_contender(files)?,
    ];
    for case in &CASES {
        contenders.push(crop_contender(case, files)?);
    }
    let title = format!(
        "Cropped JPEGs, {} photos of 500 x 375, {} KB each on average",
        files.len(),
        mean_kilobytes(files)
    );
    let mut table = Table::new(
        title,
        "images per CPU second, one thread",
        run_rounds(contenders, rounds)?,
    );
    for Case { name, .. } in CASES {
        table.compare(
            name,
            (name, CODING),
            "times coding the whole again",
            Some(Target::AtLeast(1.0 / 1.2)),
        );
        table.compare(
            name,
            (name, DECODING),
            "times decoding",
            Some(Target::AtLeast(1.0)),
        );
    }
    Ok(table)
}

fn compare_bytes(files: &[Bytes]) -> Result<Table> {
    const WHOLE: &str = "the photo";
    let mut contenders = vec![Contender::new(WHOLE, || Ok(mean_bytes(files.iter())))];
    for Case { name, pipeline, .. } in CASES {
        let crops = crops(&Pipeline::parse(pipeline)?, files)?;
        let mean = mean_bytes(crops.iter());
        contenders.push(Contender::new(name, move || Ok(mean)));
    }
    let mut table = Table::new(
        "Bytes of cropped JPEGs",
        "bytes per photo",
        run_rounds(contenders, 1)?,
    );
    for Case { name, max_share, .. } in CASES {
        let target = Target::AtMost(MAX_BYTES_PER_SHARE * max_share);
        table.compare(name, (name, WHOLE), "of the photo", Some(target));
    }
    Ok(table)
}

fn mean_bytes<'a>(files: impl ExactSizeIterator<Item = &'a Bytes>) -> f64 {
    let number = files.len();
    let total: usize = files.map(Bytes::len).sum();
    f64::from(u32::try_from(total / number.max(1)).unwrap_or(u32::MAX))
}

/// What the gateway sends of each photo.
fn crops(pipeline: &Pipeline, files: &[Bytes]) -> Result<Vec<Bytes>> {
    let crop = |(number, file): (usize, &Bytes)| {
        let id = number.to_le_bytes();
        let context = Context::new(&id).with_randomness(7, 0);
        let crop = pipeline.crop_jpeg(file, &context)?;
        Ok(crop.map_or_else(|| file.clone(), CroppedJpeg::into_bytes))
    };
    files.iter().enumerate().map(crop).collect()
}

fn crop_contender<'a>(case: &Case, files: &'a [Bytes]) -> Result<Contender<'a>> {
    let pipeline = Pipeline::parse(case.pipeline)?;
    // Both ends compute the same values, or the comparison is of no use.
    check(&pipeline, files)?;
    let clock = CpuClock::for_this_thread();
    Ok(Contender::new(case.name, move || {
        let time =
            clock.measure(|| crops(&pipeline, files).map(|crops| drop(std::hint::black_box(crops))))?;
        Ok(count(files) / time.as_secs_f64())
    }))
}

fn check(pipeline: &Pipeline, files: &[Bytes]) -> Result<()> {
    for (number, file) in files.iter().enumerate() {
        let id = number.to_le_bytes();
        let context = Context::new(&id).with_randomness(7, 0);
        let Some(crop) = pipeline.crop_jpeg(file, &context)? else {
            continue;
        };
        let run = |sample| pipeline.run(0..pipeline.len(), sample, &context);
        if run(Sample::CroppedJpeg(crop))? != run(Sample::Bytes(file.clone()))? {
            bail!("photo {number} has other pixels when it is cropped for `{pipeline}`");
        }
    }
    Ok(())
}

/// Reads the coefficients of each photo, and writes them again.
fn coding_contender(files: &[Bytes]) -> Result<Contender<'_>> {
    let mut transformer = Transformer::new()?;
    let mut transform = Transform::default();
    transform.copy_none = true;
    let clock = CpuClock::for_this_thread();
    Ok(Contender::new(CODING, move || {
        let code = |file: &Bytes| -> Result<()> {
            let mut output = OutputBuf::new_owned();
            transformer.transform(&transform, file, &mut output)?;
            std::hint::black_box(&output);
            Ok(())
        };
        let mut code = code;
        let time = clock.measure(|| files.iter().try_for_each(&mut code))?;
        Ok(count(files) / time.as_secs_f64())
    }))
}
