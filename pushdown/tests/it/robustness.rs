//! Hostile objects: any bytes result in a value or an error, never in a panic.

use std::{fs, path::Path};

use bytes::Bytes;
use proptest::{prelude::*, sample::Index};
use pushdown::{BytesKind, Context, ErrorKind, Kind, Limits, Pipeline, Sample};

use super::generate;

/// The fixtures, and generated files.
fn files() -> Vec<Bytes> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures");
    let mut paths: Vec<_> = ["photos", "tiffs"]
        .iter()
        .flat_map(|folder| {
            fs::read_dir(fixtures.join(folder))
                .into_iter()
                .flatten()
                .flatten()
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    assert!(paths.len() > 300, "the fixtures are missing");
    let real = paths
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .map(Bytes::from);
    let generated =
        generate::ObjectFormat::ALL.map(|format| format.encode(&generate::picture(40, 30, 3, false)));
    real.chain(generated).collect()
}

/// Runs everything that reads the bytes of an object.
fn read_all_ways(bytes: &Bytes) -> Result<(), TestCaseError> {
    let limits = Limits {
        max_pixels: 4_000_000,
        ..Limits::default()
    };
    let context = Context {
        limits,
        ..Context::new(b"")
    };
    for text in ["decode", "decode(orient=exif, min_short=9)"] {
        let pipeline = Pipeline::parse(text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let kind = Kind::of_object(Some(bytes.len() as u64), bytes);
        let _peak = pipeline.peak_memory(0..1, &kind);
        let Kind::Bytes(object) = &kind else {
            return Err(TestCaseError::fail("an object is bytes"));
        };
        let _stage = pipeline.smallest_stage(&BytesKind {
            length: Some(bytes.len() as u64),
            ..*object
        });
        match pipeline.run(0..1, Sample::Bytes(bytes.clone()), &context) {
            Ok(Sample::Image(image)) => {
                prop_assert!(u64::from(image.width()) * u64::from(image.height()) <= limits.max_pixels);
            }
            Ok(other) => return Err(TestCaseError::fail(format!("expected an image, found {other:?}"))),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Undecodable, "{}", error),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6 * ProptestConfig::default().cases))]

    #[test]
    fn mutated_files_never_panic(
        file in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>(), any::<bool>()), 0..6),
        cut in prop::option::weighted(0.2, any::<Index>()),
    ) {
        thread_local! {
            static FILES: Vec<Bytes> = files();
        }
        let mut bytes = FILES.with(|files| file.get(files).to_vec());
        for (index, value, early) in changes {
            // Half of the changes hit the header, where they have the most effect.
            let end = if early { bytes.len().min(200) } else { bytes.len() };
            bytes[index.index(end)] = value;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        read_all_ways(&bytes.into())?;
    }

    #[test]
    fn foreign_bytes_never_panic(
        start in prop::sample::select(vec![&b""[..], b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\x20\0\0\0WEBPVP8X", b"GIF89a", b"BM", b"II*\0", b"MM\0*", b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0"]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        read_all_ways(&[start, &rest].concat().into())?;
    }
}

/// A header that is read from the start of an object agrees with that of the whole object.
#[test]
fn partial_headers_agree_with_complete_ones() {
    for file in files() {
        let whole = pushdown::ImageHeader::read(&file);
        for length in [16, 64, 256, 1024, 4096, file.len()] {
            let Some(head) = pushdown::ImageHeader::read(&file[..length.min(file.len())]) else {
                continue;
            };
            let whole = whole.expect("the header is readable from its start");
            assert_eq!(
                (head.media, head.width, head.height),
                (whole.media, whole.width, whole.height)
            );
            assert!(head.orientation.is_none() || head.orientation == whole.orientation);
            assert!(head.scratch_bytes_per_pixel >= whole.scratch_bytes_per_pixel);
        }
    }
}
