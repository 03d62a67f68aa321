//! Any cut of any body has the output and the verdict of a plain reading of the whole.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(Mode::ALL.to_vec())
}

fn chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..5)
}

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 0..8)
}

fn upload(mode: Mode, chunks: &[Vec<u8>]) -> Upload {
    let chunks: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
    Upload::new(mode, &chunks)
}

fn check(upload: &Upload, cuts: &[Index], has_content_length: bool) {
    let cuts: Vec<_> = cuts.iter().map(|cut| cut.index(upload.body.len() + 1)).collect();
    let (output, verdict) = upload.send(&cuts, has_content_length);
    if let Some(expected) = upload.expected() {
        assert_eq!((output, verdict), (expected, Ok(())));
    } else {
        assert!(verdict.is_err(), "accepted: {upload:?}");
        assert!(!upload.is_committed(&output), "{output:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]

    #[test]
    fn correct_bodies_are_accepted(
        mode in mode(),
        chunks in chunks(),
        cuts in cuts(),
        has_content_length in any::<bool>(),
    ) {
        let upload = upload(mode, &chunks);
        prop_assert!(upload.expected().is_some());
        check(&upload, &cuts, has_content_length);
    }

    #[test]
    fn changed_bodies_have_the_same_verdict_as_a_whole(
        mode in mode(),
        chunks in chunks(),
        cuts in cuts(),
        has_content_length in any::<bool>(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..3),
    ) {
        let mut upload = upload(mode, &chunks);
        for (at, byte) in changes {
            if !upload.body.is_empty() {
                let at = at.index(upload.body.len());
                upload.body[at] = byte;
            }
        }
        check(&upload, &cuts, has_content_length);
    }

    #[test]
    fn truncated_and_repeated_bodies_have_the_same_verdict_as_a_whole(
        mode in mode(),
        chunks in chunks(),
        cuts in cuts(),
        has_content_length in any::<bool>(),
        start in any::<Index>(),
        end in any::<Index>(),
        is_repeated in any::<bool>(),
    ) {
        let mut upload = upload(mode, &chunks);
        let length = upload.body.len() + 1;
        let (start, end) = (start.index(length), end.index(length));
        let (start, end) = (start.min(end), start.max(end));
        if is_repeated {
            let part = upload.body[start..end].to_vec();
            upload.body.splice(start..start, part);
        } else {
            upload.body.drain(start..end);
        }
        check(&upload, &cuts, has_content_length);
    }

    #[test]
    fn unsigned_framing_of_any_bytes(
        body in "(1|2|0|a|\r\n|\r|\n|x-amz-checksum-crc32:AAAAAA==|x-amz-checksum-sha1:aaaaaaaaaaaaaaaaaaaaaaaaaaaa){0,24}",
        cuts in cuts(),
    ) {
        let mut upload = Upload::new(Mode::UnsignedTrailer, &[b"12"]);
        upload.body = body.into_bytes();
        check(&upload, &cuts, true);
    }
}
