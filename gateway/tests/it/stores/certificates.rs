//! Stores with TLS: the certificate is for the host that the request states, by an authority that the operator trusts.

use super::{
    super::tls::{Authority, TlsFront},
    *,
};

/// A store at `https://photos.localhost`, and a gateway that trusts an authority for it.
struct TlsLab {
    _store: PolicyStore,
    front: TlsFront,
    gateway: Gateway,
}

impl TlsLab {
    /// The store's certificate is for these names.
    fn new(names: &[&str], authority: &Authority, trusted: &Authority) -> Result<Self> {
        let store = PolicyStore::start()?;
        store.put("/1.jpg", "\"1\"", photo(400, 300, "jpeg"));
        let front = TlsFront::start(store.address(), authority, names)?;
        let gateway = Gateway::launch(
            binary(),
            [
                format!("--allow-store=https://*.localhost:{}", front.port()),
                "--allow-store-network=127.0.0.0/8".to_owned(),
                format!("--store-ca={}", trusted.file().display()),
            ],
        )?;
        Ok(Self {
            _store: store,
            front,
            gateway,
        })
    }

    fn stated(&self) -> String {
        format!("https://photos.localhost:{}; bucket=photos", self.front.port())
    }

    fn get(&self) -> Result<Response> {
        let target = format!("/1.jpg?{}", signed_query("first"));
        get(&self.gateway, &target, PIPELINE)
            .header(STORE, &self.stated())
            .send(self.gateway.listen())
    }

    fn rows(&self) -> Result<Vec<Row>> {
        let samples = vec![BatchSample::new("/1.jpg", GOOD_SIGNATURE)];
        let mut batch = BatchRequest::new(PIPELINE.parse()?, presign("first"), samples);
        batch.store = Some(self.stated().parse()?);
        rows(&post(&self.gateway, &batch)?)
    }
}

/// The connection is to the address that was checked; the name is the one that was stated.
#[test]
fn a_store_with_tls_is_asked_by_the_name_that_is_stated() -> Result<()> {
    let authority = Authority::new()?;
    let lab = TlsLab::new(&["photos.localhost"], &authority, &authority)?;
    let answer = lab.get()?;
    ensure!(answer.status == 200, "{}", answer.text());
    assert_eq!(answer.body, pixels(expected(&photo(400, 300, "jpeg"), PIPELINE)));
    ensure!(lab.rows()?.iter().all(|row| row.value.is_ok()));
    let names = lab.front.names();
    ensure!(
        !names.is_empty() && names.iter().all(|name| name == "photos.localhost"),
        "{names:?}"
    );
    Ok(())
}

#[test]
fn a_certificate_for_another_host_or_of_another_authority_is_an_error_that_says_so() -> Result<()> {
    let (authority, other) = (Authority::new()?, Authority::new()?);
    for (names, trusted, found) in [
        (
            &["audio.localhost", "localhost"][..],
            &authority,
            "one for another host",
        ),
        // That of the address that the connection is to.
        (&["127.0.0.1"][..], &authority, "one for another host"),
        (&["photos.localhost"][..], &other, "one of another authority"),
    ] {
        let lab = TlsLab::new(names, &authority, trusted)?;
        let answer = lab.get()?;
        assert_eq!(
            (answer.status, code(&answer).as_deref()),
            (502, Some("OriginUnavailable")),
            "{names:?}"
        );
        let rows = lab.rows()?;
        let row = rows.first().and_then(|row| row.value.as_ref().err());
        let row = row.context("a value of a store that is not trusted")?.to_string();
        for text in [answer.text(), row] {
            for part in ["`photos.localhost`", "store-ca", found] {
                ensure!(text.contains(part), "{part}: {text}");
            }
            ensure!(!text.contains("127.0.0.1"), "{text}");
        }
    }
    Ok(())
}
