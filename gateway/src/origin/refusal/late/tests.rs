use std::convert::Infallible;

use futures::{FutureExt as _, channel::mpsc};
use http_body_util::StreamBody;

use super::*;
use crate::{
    body,
    error::{Error, ErrorKind},
    s3::errors::ACCESS_DENIED,
};

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const ARN: &str = "arn:aws:sts::111122223333:assumed-role/gateway/session";

/// A refusal as AWS words it.
fn refusal(code: &str) -> String {
    format!(
        "<Error><Code>{code}</Code><Message>User: {ARN} is not authorized to perform: s3:PutObject</Message>\
         <AWSAccessKeyId>GATEWAY</AWSAccessKeyId><RequestId>R1</RequestId><HostId>h/1=</HostId></Error>"
    )
}

async fn read(body: Body) -> Result<Bytes, BoxError> {
    let body = mask(Response::new(body), Upstream::Gateway).into_body();
    Ok(body.collect().await?.to_bytes())
}

/// The masked text of an answer that arrives as a whole.
async fn masked(text: &str, signer: Upstream) -> String {
    let body = mask(Response::new(body::full(text.to_owned())), signer).into_body();
    assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
    let bytes = body.collect().await.unwrap().to_bytes();
    assert_eq!(bytes.len(), text.len(), "{text}");
    String::from_utf8(bytes.into()).unwrap()
}

/// A body in pieces of this many bytes.
fn pieces(text: &str, length: usize) -> Body {
    let pieces: Vec<_> = text
        .as_bytes()
        .chunks(length)
        .map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(piece))))
        .collect();
    StreamBody::new(futures::stream::iter(pieces))
        .map_err(|never| match never {})
        .boxed_unsync()
}

#[tokio::test]
async fn a_refusal_shows_neither_identity_nor_signature() {
    let ids = "<RequestId>R1</RequestId><HostId>h/1=</HostId>";
    for (code, signer, message) in [
        ("AccessDenied", Upstream::Gateway, ACCESS_DENIED),
        (
            "SignatureDoesNotMatch",
            Upstream::Caller,
            "the store refused the gateway's signature: the gateway's operator has to check identity, region and clock",
        ),
        (
            "ExpiredToken",
            Upstream::Gateway,
            "the store refused the gateway's credentials: try again later",
        ),
    ] {
        let text = format!("{DECLARATION}  \n{}", refusal(code));
        let expected =
            format!("{DECLARATION}  \n<Error><Code>{code}</Code><Message>{message}</Message>{ids}</Error>");
        assert_eq!(masked(&text, signer).await.trim_end_matches(' '), expected);
    }
    // Without room for the message.
    let short = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
    let expected = "<Error><Code>AccessDenied</Code></Error>";
    assert_eq!(masked(short, Upstream::Gateway).await.trim_end(), expected);
}

#[tokio::test]
async fn other_bodies_pass_unchanged() {
    let denied = refusal("AccessDenied");
    let internal = refusal("InternalError");
    for (text, signer) in [
        (denied.as_str(), Upstream::Caller),
        (internal.as_str(), Upstream::Gateway),
        (
            "<CopyObjectResult><ETag>1</ETag></CopyObjectResult>",
            Upstream::Gateway,
        ),
        (
            "<DeleteResult><Error><Code>AccessDenied</Code></Error></DeleteResult>",
            Upstream::Gateway,
        ),
        ("  \n", Upstream::Gateway),
        ("", Upstream::Gateway),
        ("\0\0\0\u{1}<Error>", Upstream::Gateway),
        ("<", Upstream::Gateway),
    ] {
        assert_eq!(masked(text, signer).await, text);
    }
}

#[tokio::test]
async fn the_size_of_pieces_does_not_matter() {
    for (document, is_refusal) in [
        (refusal("AccessDenied"), true),
        ("<Errors/> <Error>".to_owned(), false),
    ] {
        let text = format!("{DECLARATION} <!-- - --> {document}");
        let expected = read(body::full(text.clone())).await.unwrap();
        assert_eq!(expected != text, is_refusal);
        for length in 1..text.len() {
            assert_eq!(read(pieces(&text, length)).await.unwrap(), expected, "{length}");
        }
    }
}

/// White space keeps the client's connection alive, so it must not wait for the document.
#[tokio::test]
async fn white_space_is_sent_as_it_arrives() {
    let (store, received) = mpsc::unbounded::<Result<Frame<Bytes>, BoxError>>();
    let send = |text: &str| {
        let frame = Frame::data(Bytes::copy_from_slice(text.as_bytes()));
        store.unbounded_send(Ok(frame)).unwrap();
    };
    let answer = Response::new(StreamBody::new(received).boxed_unsync());
    let mut body = mask(answer, Upstream::Gateway).into_body();
    for text in [DECLARATION, " ", "\n"] {
        send(text);
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), text);
    }
    send("<Error><Code>AccessDenied</Code><Message>");
    assert!(body.frame().now_or_never().is_none(), "the refusal is held");
    send(&format!("{ARN}</Message></Error>"));
    drop(store);
    let rest = body.collect().await.unwrap().to_bytes();
    let expected = format!("<Error><Code>AccessDenied</Code><Message>{ACCESS_DENIED}</Message></Error>");
    assert_eq!(rest.trim_ascii_end(), expected.as_bytes());
}

#[tokio::test]
async fn refusals_that_cannot_be_masked_are_cut() {
    let long = format!("<Error><Message>{}", "x".repeat(MAX_DOCUMENT_BYTES));
    for (text, kind) in [
        (long.as_str(), ErrorKind::OriginUnavailable),
        ("<Error/>", ErrorKind::Internal),
        ("<Error><Code>AccessDenied</", ErrorKind::Internal),
    ] {
        let error = read(body::full(text.to_owned())).await.unwrap_err();
        assert_eq!(error.downcast::<Error>().unwrap().kind(), kind);
    }
}
