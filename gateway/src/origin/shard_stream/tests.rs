use futures::stream;
use http_body::Body as _;
use http_body_util::StreamBody;

use super::*;

const SHARD: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ....";

/// An answer with this part of [`SHARD`], in pieces.
fn answer(status: u16, part: Range<usize>, piece_bytes: usize) -> OriginObject {
    let pieces: Vec<Result<_, BoxError>> = SHARD[part.clone()]
        .chunks(piece_bytes)
        .map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))))
        .collect();
    let range = format!("bytes {}-{}/{}", part.start, part.end - 1, SHARD.len());
    let headers = HeaderMap::from_iter([(header::CONTENT_RANGE, HeaderValue::from_str(&range).unwrap())]);
    OriginObject {
        content_length: Some(part.len() as u64),
        body: StreamBody::new(stream::iter(pieces)).boxed_unsync(),
        ..OriginObject::for_test(StatusCode::from_u16(status).unwrap(), headers)
    }
}

async fn content(object: OriginObject) -> Result<Vec<u8>, BoxError> {
    Ok(object.body.collect().await?.to_bytes().to_vec())
}

#[tokio::test]
async fn an_entry_is_taken_out_of_a_part_and_of_a_whole_shard() {
    let range = MemberRange::new(4, 31, 7).unwrap();
    for piece_bytes in [1, 5, 33, 100] {
        for (status, part) in [(206, 4..42), (206, 4..60), (200, 0..SHARD.len())] {
            let answer = answer(status, part, piece_bytes);
            let mut stream = ShardStream::new(answer, &range.entry(), 100).unwrap();
            assert!(stream.has(&range.entry()));
            assert_eq!(stream.read_header(&range).await.unwrap(), SHARD[4..35]);
            let object = stream.into_object(None);
            assert_eq!((object.status, object.content_length), (StatusCode::OK, Some(7)));
            assert!(!object.headers.contains_key(header::CONTENT_RANGE));
            assert_eq!(object.headers[header::CONTENT_LENGTH], "7");
            assert_eq!(content(object).await.unwrap(), SHARD[35..42]);
        }
    }
}

#[tokio::test]
async fn an_empty_content_ends_at_once() {
    let range = MemberRange::new(0, 31, 0).unwrap();
    let mut stream = ShardStream::new(answer(206, 0..31, 100), &range.entry(), 100).unwrap();
    stream.read_header(&range).await.unwrap();
    let object = stream.into_object(None);
    assert!(object.body.is_end_stream());
    assert!(content(object).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_that_ends_early_is_an_error() {
    let range = MemberRange::new(0, 31, 7).unwrap();
    let mut short = answer(206, 0..20, 100);
    (short.headers, short.content_length) = (answer(206, 0..38, 1).headers, None);
    let mut stream = ShardStream::new(short, &range.entry(), 100).unwrap();
    let error = stream.read_header(&range).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OriginUnavailable);
    let mut short = answer(206, 0..35, 100);
    (short.headers, short.content_length) = (answer(206, 0..38, 1).headers, None);
    let mut stream = ShardStream::new(short, &range.entry(), 100).unwrap();
    stream.read_header(&range).await.unwrap();
    assert!(content(stream.into_object(None)).await.is_err());
}

#[test]
fn another_part_is_refused_and_skipping_is_bounded() {
    let (requested, kind) = (4..42, |answer, max_skipped_bytes| {
        let stream = ShardStream::new(answer, &(4..42), max_skipped_bytes);
        stream.map(drop).map_err(|error| error.kind())
    });
    assert_eq!(kind(answer(206, 4..42, 100), 0), Ok(()));
    let unavailable = Err(ErrorKind::OriginUnavailable);
    assert_eq!(kind(answer(206, 5..42, 100), 0), unavailable);
    let mut unnamed = answer(206, 4..42, 100);
    unnamed.headers.clear();
    assert_eq!(kind(unnamed, 0), unavailable);
    let mut longer = answer(206, 4..42, 100);
    longer.content_length = Some(39);
    assert_eq!(kind(longer, 0), unavailable);
    let whole = || answer(200, 0..SHARD.len(), 100);
    assert_eq!(kind(whole(), 4), Ok(()));
    assert_eq!(kind(whole(), 3), Err(ErrorKind::EntityTooLarge));
    let short = ShardStream::new(answer(206, 4..40, 100), &requested, 0).unwrap();
    assert!(!short.has(&requested));
}
