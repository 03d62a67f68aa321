//! Virtual hosts of a real store.

use pushdown_client::store::AddressingStyle;
use pushdown_testkit::{Backend, Keys, Payload, Request, Weed};

use super::*;

#[test]
fn seaweedfs_is_read_by_virtual_hosts() {
    if !Backend::SeaweedFs.is_enabled().unwrap() {
        return;
    }
    let keys = Keys::new(ACCESS_KEY, SECRET_KEY);
    let weed = Weed::launch(std::slice::from_ref(&keys)).unwrap();
    let address = weed.address();
    let create = Request::new("PUT", &format!("/{BUCKET}"))
        .header("Host", &address.to_string())
        .body("");
    let created = keys.sign(create, Payload::Signed).unwrap().send(address).unwrap();
    assert_eq!(created.status, 200, "{}", created.text());
    let flags = [
        // No path-style address.
        format!("--allow-store={}", weed.domain_url().replace("://", "://*.")),
        "--allow-store-network=127.0.0.0/8".to_owned(),
    ];
    let gateway = Gateway::launch(&find_gateway().unwrap(), &flags).unwrap();
    let store = Store::builder()
        .endpoint(weed.domain_url())
        .addressing_style(AddressingStyle::Virtual)
        .region("us-east-1")
        .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
        .retry(RetryPolicy::NEVER)
        .gateway(format!("http://{}", gateway.listen()));
    let world = World::with_objects(nested_photos());
    run(async {
        let store = store.clone().build().await.unwrap();
        for (key, photo) in &world.objects {
            let mut upload = store.upload(BUCKET, key);
            upload.write(photo).await.unwrap();
            upload.finish().await.unwrap();
        }
    });
    let expected = read_rows(world.reader(RANDOM).mode(Mode::Plain).seed(7));
    for mode in MODES {
        let reader = PushdownReader::builder()
            .store(store.clone())
            .bucket(BUCKET)
            .pipeline(RANDOM)
            .batch_size(4)
            .seed(7)
            .mode(mode);
        let (rows, stats, found) = read(reader).unwrap();
        assert_same_values(&rows, &expected);
        assert_eq!(found, mode);
        assert_eq!(stats.gateway_bytes_down > 0, mode != Mode::Plain, "{mode:?}");
    }
}
