//! The readings of a request that its signature is compared with, and what a wrong one reveals.

use super::*;
use crate::s3::AddressStyle;
use crate::s3::errors;

fn with_public_hosts(hosts: &[&str]) -> Verifier {
    Verifier {
        public_hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..verifier()
    }
}

fn is_mismatch(error: &AuthError) -> bool {
    matches!(error, AuthError::SignatureMismatch(_))
}

#[test]
fn a_signature_is_bound_to_its_carrier() {
    let request = signed(get("/k"));
    let signature = header(&request, "authorization").rsplit_once('=').unwrap().1;
    let credential = "TESTTRAINER00001%2F20231114%2Fus-east-1%2Fs3%2Faws4_request";
    let target = format!(
        "/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date=20231114T221320Z&X-Amz-Expires=300\
         &X-Amz-SignedHeaders=host%3Bx-amz-content-sha256%3Bx-amz-date&X-Amz-Signature={signature}"
    );
    let mut moved = without_header(&request, "authorization");
    moved.target = target;
    assert!(is_mismatch(&refusal(&moved)));

    let request = presigned(get("/k"));
    let signature = request.target.rsplit_once('=').unwrap().1;
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20231114/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, \
         Signature={signature}"
    );
    let moved = get("/k")
        .header("x-amz-date", "20231114T221320Z")
        .header("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
        .header("authorization", &authorization);
    assert!(is_mismatch(&refusal(&moved)));
}

#[test]
fn a_wrong_signature_reveals_nothing_but_the_request() {
    let request = signed(get("/k").header("x-amz-meta-note", "n"));
    let expected = header(&request, "authorization")
        .rsplit_once('=')
        .unwrap()
        .1
        .to_owned();
    let provided = format!("0123{}", &expected[4..]);
    let error = refusal(&with_authorization(&request, &expected, &provided));

    let log = format!("{error} {error:?} {:?}", crate::error::Error::from(error.clone()));
    let answer = errors::auth_answer(&error);
    let texts: Vec<_> = answer.fields.iter().map(|(_, text)| text.as_str()).collect();
    for hidden in [SECRET, expected.as_str()] {
        assert!(!log.contains(hidden) && texts.iter().all(|text| !text.contains(hidden)));
    }
    assert!(log.contains(ACCESS_KEY) && !log.contains(&provided), "{log}");
    let AuthError::SignatureMismatch(mismatch) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(mismatch.signature_provided.as_str(), provided);
    assert!(
        mismatch
            .canonical_request
            .as_str()
            .starts_with("GET\n/k\n\nhost:bucket.s3.test:9000\n")
    );
    assert!(
        mismatch
            .string_to_sign
            .as_str()
            .starts_with("AWS4-HMAC-SHA256\n20231114T221320Z\n20231114/us-east-1/s3/aws4_request\n")
    );
}

#[test]
fn a_verified_request_shows_no_secret() {
    let verified = verify(&presigned(get("/k"))).unwrap();
    let shown = format!("{verified:?} {:?}", verifier());
    assert!(
        !shown.contains(SECRET) && !shown.contains("X-Amz-Signature"),
        "{shown}"
    );
}

#[test]
fn a_path_can_be_signed_as_it_is_sent() {
    for (target, key) in [("/a=b(c)", "a=b(c)"), ("/a%2fb%2Fc", "a/b/c"), ("/%41", "A")] {
        let verified = verify(&signed(get(target))).unwrap();
        assert_eq!(verified.address().key(), key.as_bytes(), "{target}");
    }
}

#[test]
fn a_plus_in_a_query_is_a_space() {
    // obstore sends `+` and signs `%20`, as the oracle does.
    let verified = verify(&signed(get("/?prefix=a+b"))).unwrap();
    assert_eq!(verified.query().get("prefix"), Some("a%20b"));
    let verified = verify(&signed(get("/k?select&select-type=2"))).unwrap();
    assert_eq!(verified.query().to_string(), "select=&select-type=2");
}

#[test]
fn both_secrets_of_a_key_are_accepted() {
    let text = format!(
        "[[key]]\naccess-key = \"{ACCESS_KEY}\"\nsecret = \"the-next-secret-of-a-test\"\nprevious-secret = \"{SECRET}\"\n\
         upstream = \"self\"\n"
    );
    let keys = Keys::from_text(&text).unwrap();
    let verifier = verifier();
    for (index, secret) in ["the-next-secret-of-a-test", SECRET].into_iter().enumerate() {
        let signer = testkit::Keys::new(ACCESS_KEY, secret).with_time(signing_time());
        let request = signer.sign(get("/k"), testkit::Payload::Chunks).unwrap();
        let verified = verifier
            .verify_sent(&parts(&request), &keys, signing_time())
            .unwrap();
        assert_eq!(
            (verified.secret_index, verified.secret().as_bytes()),
            (index, secret.as_bytes())
        );
    }
    let signer = testkit::Keys::new(ACCESS_KEY, "an-older-secret-of-a-test").with_time(signing_time());
    let request = signer.sign(get("/k"), testkit::Payload::Signed).unwrap();
    let refused = verifier
        .verify_sent(&parts(&request), &keys, signing_time())
        .unwrap_err();
    assert!(is_mismatch(&refused));
}

#[test]
fn a_proxy_can_send_another_host() {
    let proxied = with_header(&signed(get("/k")), "host", "10.0.0.7:8080");
    assert!(is_mismatch(&refusal(&proxied)));
    let verifier = with_public_hosts(&["other.test", HOST]);
    let verified = verifier
        .verify_sent(&parts(&proxied), &keys(), signing_time())
        .unwrap();
    assert_eq!(verified.address().bucket(), b"bucket");
}

#[test]
fn the_address_is_that_of_the_signed_host() {
    let request = signed(testkit::Request::new("GET", "/b/k").header("host", "public.test"));
    // A host that nobody signed must not choose the bucket.
    let moved = with_header(&request, "host", "other-bucket.s3.test");
    let verifier = with_public_hosts(&["public.test"]);
    let verified = verifier
        .verify_sent(&parts(&moved), &keys(), signing_time())
        .unwrap();
    let address = verified.address();
    assert_eq!(address.style(), AddressStyle::Path);
    assert_eq!((address.bucket(), address.key()), (&b"b"[..], &b"k"[..]));
}
