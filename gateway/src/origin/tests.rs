use http::Uri;

use super::*;
use crate::config::Limits;

/// No store listens at this address.
fn origin(requires_signing: bool) -> Origin {
    let config = Config {
        own: Some(OwnStoreConfig {
            url: Uri::from_static("http://127.0.0.1:1"),
            style: None,
            region: String::new(),
            ca: None,
        }),
        stated: None,
        limits: Limits::default(),
        requires_signing,
    };
    config.build(&Metrics::default()).unwrap()
}

/// A bug that skips the decision must not become a request of the gateway's, or one that is forwarded.
#[tokio::test]
async fn re_sign_mode_sends_nothing_that_was_not_decided_on() {
    for (requires_signing, kind) in [(true, ErrorKind::Internal), (false, ErrorKind::OriginUnavailable)] {
        let origin = origin(requires_signing);
        let target = "/b/k".parse().unwrap();
        let read = OriginRequest::for_sample(HeaderValue::from_static("gateway"), target);
        assert_eq!(origin.read(read).await.unwrap_err().kind(), kind);
        let (head, body) = Request::put("/b/k")
            .body(crate::body::empty())
            .unwrap()
            .into_parts();
        let unsigned = StoreSignature::Unchanged;
        let sent = origin.send(head, unsigned, body, &Progress::default(), ()).await;
        assert_eq!(sent.unwrap_err().kind(), kind);
    }
}
