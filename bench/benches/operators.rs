//! Single steps, and short pipelines next to libjpeg-turbo alone, to see the effect of a change. The published ratios are those of
//! `pushdown-bench operators`, which runs both sides in turns.

use std::{
    env,
    hint::black_box,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pushdown::{Context, Pipeline, Sample};
use pushdown_bench::photos;
use turbojpeg::{Decompressor, PixelFormat};

/// For photos of about 500 x 375 pixels.
const PIPELINES: [&str; 6] = [
    "decode",
    "decode | resize(short=256)",
    "decode | resize(short=256) | center_crop(224)",
    "decode | resize(short=256) | center_crop(224) | to_float | normalize(imagenet)",
    "decode | resize(short=256, filter=bicubic) | center_crop(224)",
    "decode | resize(short=256) | center_crop(224) | encode(jpeg)",
];
/// For photos of 12 megapixels.
const LARGE: [&str; 4] = [
    "decode",
    "decode(min_short=512)",
    "decode | resize(short=512)",
    "decode(min_short=512) | resize(short=512)",
];
/// For a decoded photo.
const STEPS: [&str; 9] = [
    "resize(short=256)",
    "resize(short=256, filter=lanczos)",
    "center_crop(224)",
    "to_float",
    "to_float | normalize(imagenet)",
    "to_float | layout(hwc)",
    "random_resized_crop(224)",
    "flip_h(1)",
    "color_jitter(0.4, 0.4, 0.4, 0.1)",
];

/// The photos in `folder` of `PUSHDOWN_PHOTOS` or `.cache/photos`, or one fixture if there are none.
fn files(folder: &str) -> Vec<Bytes> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let photos = env::var_os("PUSHDOWN_PHOTOS").map_or_else(|| root.join(".cache/photos"), PathBuf::from);
    let fixture =
        || std::fs::read(root.join("testkit/fixtures/photos/jpeg_large.jpg")).map(|file| vec![file.into()]);
    let files = photos::read_all(&photos.join(folder))
        .or_else(|_| fixture())
        .unwrap_or_default();
    assert!(!files.is_empty(), "no photos and no fixtures found");
    files.into_iter().take(50).collect()
}

fn run(pipeline: &Pipeline, first: usize, sample: Sample) -> Sample {
    let context = Context::new(b"photos/0.jpg").with_randomness(0, 0);
    match pipeline.run(first..pipeline.len(), sample, &context) {
        Ok(value) => value,
        Err(error) => unreachable!("{error}"),
    }
}

fn pipelines(criterion: &mut Criterion, folder: &str, pipelines: &[&str]) {
    let files = files(folder);
    let mut group = criterion.benchmark_group(folder);
    group
        .sample_size(10)
        .throughput(Throughput::Elements(files.len() as u64));
    for text in pipelines {
        let pipeline = parsed(text);
        group.bench_function(*text, |bencher| {
            bencher.iter(|| {
                for file in &files {
                    drop(black_box(run(&pipeline, 0, Sample::Bytes(file.clone()))));
                }
            });
        });
    }
    group.bench_function("libjpeg-turbo alone", |bencher| {
        let (mut decompressor, mut pixels) = (Decompressor::new().ok(), Vec::new());
        bencher.iter(|| {
            let decompressor = decompressor.as_mut()?;
            files
                .iter()
                .try_for_each(|file| decode_alone(decompressor, file, &mut pixels))
        });
    });
    group.finish();
}

/// Decodes by libjpeg-turbo, with one handle and one buffer for all photos.
fn decode_alone(decompressor: &mut Decompressor, file: &[u8], pixels: &mut Vec<u8>) -> Option<()> {
    let header = decompressor.read_header(file).ok()?;
    let (width, height, pitch) = (header.width, header.height, header.width * 3);
    pixels.resize(pitch * height, 0);
    let image = turbojpeg::Image {
        pixels: pixels.as_mut_slice(),
        width,
        pitch,
        height,
        format: PixelFormat::RGB,
    };
    decompressor.decompress(file, image).ok()
}

fn steps(criterion: &mut Criterion) {
    let photo = files(photos::SMALL).swap_remove(0);
    let decode = parsed("decode");
    let image = run(&decode, 0, Sample::Bytes(photo));
    let mut group = criterion.benchmark_group("step");
    for text in STEPS {
        let pipeline = parsed(&format!("decode | {text}"));
        group.bench_function(text, |bencher| {
            bencher.iter_batched(
                || image.clone(),
                |image| run(&pipeline, 1, image),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn parsed(text: &str) -> Pipeline {
    match Pipeline::parse(text) {
        Ok(pipeline) => pipeline,
        Err(error) => unreachable!("{text}: {error}"),
    }
}

fn all(criterion: &mut Criterion) {
    pipelines(criterion, photos::SMALL, &PIPELINES);
    pipelines(criterion, photos::LARGE, &LARGE);
    steps(criterion);
}

criterion_group!(benches, all);
criterion_main!(benches);
