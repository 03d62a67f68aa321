//! Hostile stores. No test here sends a packet: names are resolved by a script, and a recording takes the place of TCP.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use pushdown::wire::StoreEndpoint;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{config::Stores, error::ErrorKind};

/// Answers names by a script: each look-up takes the next answer, and the last one stays.
#[derive(Debug, Clone, Default)]
struct ScriptedResolver {
    answers: Arc<Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>>,
    lookups: Arc<Mutex<Vec<String>>>,
    /// Names that begin with `slow` are looked up until this is cancelled.
    answers_all: CancellationToken,
}

/// Records the addresses that a connection would be to, and refuses it.
#[derive(Debug, Clone, Default)]
struct RecordingDial(Arc<Mutex<Vec<Vec<IpAddr>>>>);

impl Resolver for ScriptedResolver {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.lookups.lock().push(name.to_owned());
        let mut answers = self.answers.lock();
        let answer = answers.get_mut(name).and_then(|answers| {
            if answers.len() > 1 {
                answers.pop_front()
            } else {
                answers.front().cloned()
            }
        });
        let answer = answer.ok_or_else(|| io::Error::other("no such host"));
        if !name.starts_with("slow") {
            return Box::pin(future::ready(answer));
        }
        let answers_all = self.answers_all.clone();
        Box::pin(async move {
            answers_all.cancelled().await;
            answer
        })
    }
}

impl Dial for RecordingDial {
    type Connection = TokioIo<TcpStream>;

    fn dial(
        &self,
        _url: Uri,
        addresses: Vec<IpAddr>,
    ) -> BoxFuture<'static, Result<Self::Connection, BoxError>> {
        self.0.lock().push(addresses);
        Box::pin(future::ready(Err("recorded, and not connected".into())))
    }
}

const LOOKUP_LIMIT: Duration = Duration::from_secs(5);

/// A gateway's door to stores that callers state.
struct Door {
    allowed: AllowedStores,
    connector: StoreConnector<ScriptedResolver, RecordingDial>,
}

/// Where a stated store is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// It is no store: 400.
    Text,
    /// The operator did not allow it: 403.
    Store,
    /// Its host has no address that the operator allows: 403.
    Address,
}

impl Door {
    /// `names` have the addresses of one look-up after the other, separated by `;`.
    fn new(names: &[(&str, &str)]) -> Self {
        let config = Stores {
            allowed: [
                "https://*.s3.example",
                "http://*.hall.example:8333",
                "https://store.example",
            ]
            .map(|text| text.parse().unwrap())
            .to_vec(),
            networks: vec!["10.20.0.0/16".parse().unwrap()],
            ..Stores::default()
        };
        let allowed = AllowedStores::new(&config, Some("http://10.9.9.9:9000".parse().unwrap()));
        let answers = names.iter().map(|(name, answers)| {
            let lists = answers.split(';');
            let parse = |list: &str| list.split(',').map(|text| text.trim().parse().unwrap()).collect();
            ((*name).to_owned(), lists.map(parse).collect())
        });
        let resolver = ScriptedResolver {
            answers: Arc::new(Mutex::new(answers.collect())),
            lookups: Arc::default(),
            answers_all: CancellationToken::new(),
        };
        let connector = StoreConnector {
            resolver,
            dial: RecordingDial::default(),
            check: Some(HostCheck::new(
                Arc::new(allowed.clone()),
                LOOKUP_LIMIT,
                &Metrics::default(),
            )),
        };
        Self { allowed, connector }
    }

    /// The way of a stated store to its connection.
    async fn enter(&self, stated: &str) -> Result<(), (Refused, String)> {
        let store: StoreEndpoint = stated
            .parse()
            .map_err(|error: pushdown::wire::InvalidStore| (Refused::Text, error.to_string()))?;
        let store = self.allowed.admit(store).map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::StoreNotAllowed);
            (Refused::Store, error.to_string())
        })?;
        let url = format!("{}/", store.endpoint().url()).parse().unwrap();
        let error = self.connector.clone().connect(url).await.unwrap_err();
        match error.downcast_ref::<HostRefusal>() {
            Some(refusal) => Err((Refused::Address, refusal.to_string())),
            None => Ok(()),
        }
    }

    fn dialled(&self) -> Vec<Vec<IpAddr>> {
        self.connector.dial.0.lock().clone()
    }

    fn lookups(&self) -> Vec<String> {
        self.connector.resolver.lookups.lock().clone()
    }
}

fn addresses(text: &str) -> Vec<IpAddr> {
    text.split(", ").map(|text| text.parse().unwrap()).collect()
}

const HOSTILE: [(&str, Refused); 72] = [
    // No URL of a store.
    ("", Refused::Text),
    ("file:///etc/passwd", Refused::Text),
    ("file://store.example", Refused::Text),
    ("gopher://store.example:443", Refused::Text),
    ("ftp://store.example", Refused::Text),
    ("unix:///run/docker.sock", Refused::Text),
    ("javascript:alert(1)", Refused::Text),
    ("//store.example", Refused::Text),
    ("store.example", Refused::Text),
    ("HTTPS://store.example", Refused::Text),
    ("https:store.example", Refused::Text),
    ("https://", Refused::Text),
    ("https:///bucket", Refused::Text),
    ("https://store.example/bucket", Refused::Text),
    ("https://store.example?host=other", Refused::Text),
    ("https://store.example#@other", Refused::Text),
    ("https://store.example\\.other.example", Refused::Text),
    // A user name, which some parsers take for the host.
    ("https://user@store.example", Refused::Text),
    ("https://store.example@169.254.169.254", Refused::Text),
    ("https://store.example:443@127.0.0.1:8333", Refused::Text),
    ("https://169.254.169.254\\@store.example", Refused::Text),
    // Line ends, spaces and escapes.
    ("https://store.example\r\nHost: other", Refused::Text),
    ("https://store.example\n", Refused::Text),
    ("https://store .example", Refused::Text),
    ("https://store%2eexample", Refused::Text),
    ("https://store.example%00.other", Refused::Text),
    // Ports.
    ("https://store.example:", Refused::Text),
    ("https://store.example:0", Refused::Text),
    ("https://store.example:65979", Refused::Text),
    ("https://store.example:-443", Refused::Text),
    ("https://store.example:443:22", Refused::Text),
    ("https://store.example:0443", Refused::Text),
    ("https://store.example:22", Refused::Store),
    ("http://store.example:443", Refused::Store),
    ("http://store.example", Refused::Store),
    ("http://10.9.9.9:9001", Refused::Store),
    // Dots and letters.
    ("https://store.example..", Refused::Text),
    ("https://.store.example", Refused::Text),
    ("https://store..example", Refused::Text),
    ("https://st\u{f6}re.example", Refused::Text),
    ("https://\u{ff53}tore.example", Refused::Text),
    ("https://store\u{3002}example", Refused::Text),
    ("https://xn--stre-6qa.example", Refused::Store),
    ("https://store.example.other.example", Refused::Store),
    ("https://other-store.example", Refused::Store),
    // Addresses in every notation. The operator named 10.9.9.9 alone.
    ("http://127.0.0.1:9000", Refused::Store),
    ("http://169.254.169.254", Refused::Store),
    ("http://[::1]:9000", Refused::Store),
    ("http://[::ffff:10.9.9.9]:9000", Refused::Store),
    ("http://[::ffff:169.254.169.254]", Refused::Store),
    ("http://[fd00:ec2::254]", Refused::Store),
    ("http://[64:ff9b::a9fe:a9fe]", Refused::Store),
    ("http://[fe80::1%25eth0]", Refused::Text),
    ("http://[::1", Refused::Text),
    ("http://::1", Refused::Text),
    ("http://168364297:9000", Refused::Text),
    ("http://0x0a090909:9000", Refused::Text),
    ("http://0xa.0x9.0x9.0x9:9000", Refused::Text),
    ("http://012.011.011.011:9000", Refused::Text),
    ("http://10.9.2313:9000", Refused::Text),
    ("http://10.591113:9000", Refused::Text),
    ("http://010.9.9.9:9000", Refused::Text),
    ("http://10.9.9.9.:9000", Refused::Text),
    ("http://10.9.9.0x9:9000", Refused::Text),
    // A `*` is one label, and the bucket.
    ("https://s3.example", Refused::Store),
    ("https://s3.example; bucket=s3", Refused::Store),
    ("https://photos.s3.example", Refused::Store),
    ("https://a.photos.s3.example; bucket=a", Refused::Store),
    ("https://a.photos.s3.example; bucket=a.photos", Refused::Text),
    ("https://*.s3.example; bucket=*", Refused::Text),
    ("https://photoss3.example; bucket=photoss3", Refused::Store),
    ("https://photos.s3.example; bucket=other", Refused::Text),
];

#[tokio::test]
async fn hostile_stores_are_refused_before_anything_is_looked_up() {
    let door = Door::new(&[]);
    for (stated, expected) in HOSTILE {
        let (refused, message) = door.enter(stated).await.expect_err(stated);
        assert_eq!(refused, expected, "{stated}: {message}");
        assert!(!message.contains(['\r', '\n']), "{message}");
    }
    assert!(door.dialled().is_empty() && door.lookups().is_empty());
}

/// The owner of a domain can give its names any address, and names of buckets can lead anywhere.
#[tokio::test]
async fn a_host_below_a_star_leads_to_no_address_that_only_the_gateway_can_reach() {
    for address in [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "10.9.9.9",
        "100.100.100.200",
        "168.63.129.16",
        "169.254.169.254",
        "169.254.170.2",
        "172.31.0.1",
        "192.0.0.192",
        "192.168.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.9.9.9",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::1",
        "2002:a09:909::1",
        "2001::1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
        "127.0.0.1, ::1, 169.254.169.254",
    ] {
        let door = Door::new(&[("photos.s3.example", address)]);
        let (refused, message) = door
            .enter("https://photos.s3.example; bucket=photos")
            .await
            .unwrap_err();
        assert_eq!(refused, Refused::Address, "{address}");
        assert!(
            message.contains("the host `photos.s3.example` is not allowed"),
            "{message}"
        );
        assert!(message.contains("allow-store-network"), "{message}");
        for part in address.split(", ") {
            assert!(!message.contains(part), "{message}");
        }
        assert!(door.dialled().is_empty(), "{address}");
    }
}

#[tokio::test]
async fn a_connection_is_to_the_addresses_that_were_checked() {
    let door = Door::new(&[(
        "photos.s3.example",
        "52.219.0.1, 127.0.0.1, 2600:1fa0::1; 127.0.0.1",
    )]);
    let stated = "https://photos.s3.example; bucket=photos";
    door.enter(stated).await.unwrap();
    // One look-up, and of its addresses the public ones.
    assert_eq!(door.dialled(), [addresses("52.219.0.1, 2600:1fa0::1")]);
    assert_eq!(door.lookups(), ["photos.s3.example"]);
    assert_eq!(door.enter(stated).await.unwrap_err().0, Refused::Address);
    assert_eq!((door.dialled().len(), door.lookups().len()), (1, 2));
}

#[tokio::test]
async fn an_operator_allows_addresses_by_networks_and_by_naming_a_host() {
    let door = Door::new(&[
        ("photos.hall.example", "10.20.0.7; 10.21.0.7"),
        ("store.example", "192.168.0.1"),
    ]);
    let photos = "http://photos.hall.example:8333; bucket=photos";
    door.enter(photos).await.unwrap();
    door.enter("https://Store.Example.:443/").await.unwrap();
    door.enter("http://10.9.9.9:9000").await.unwrap();
    let expected = ["10.20.0.7", "192.168.0.1", "10.9.9.9"].map(addresses);
    assert_eq!(door.dialled(), expected);
    assert_eq!(door.enter(photos).await.unwrap_err().0, Refused::Address);
    assert_eq!(
        door.lookups(),
        ["photos.hall.example", "store.example", "photos.hall.example"]
    );
}

/// Names that are not resolved are the store's trouble: 502.
#[tokio::test]
async fn a_name_without_an_address_is_no_refusal() {
    let door = Door::new(&[]);
    door.enter("https://photos.s3.example; bucket=photos")
        .await
        .unwrap();
    assert!(door.dialled().is_empty());
    assert_eq!(door.lookups(), ["photos.s3.example"]);
}

#[tokio::test]
async fn hosts_with_open_connections_are_limited() {
    let door = Door::new(&[("photos.s3.example", "52.219.0.1")]);
    let check = door.connector.check.as_ref().unwrap();
    let open = |number| {
        check
            .open_hosts
            .open(&StoreHost::Name(format!("b{number}.s3.example")))
    };
    let hosts: Vec<_> = (0..MAX_OPEN_HOSTS).map(open).collect();
    let (_, message) = door
        .enter("https://photos.s3.example; bucket=photos")
        .await
        .unwrap_err();
    assert!(message.contains("expected at most 1000"), "{message}");
    assert!(door.dialled().is_empty() && door.lookups().is_empty());
    drop(hosts);
    door.enter("https://photos.s3.example; bucket=photos")
        .await
        .unwrap();
    // The connection failed, so that its host has none.
    let hosts: Vec<_> = (0..MAX_OPEN_HOSTS).map(open).collect();
    assert!(hosts.iter().all(Option::is_some));
}

/// Anybody can make names up below a `*`. While they are looked up, and after they were not found, they take nothing from others.
#[tokio::test(start_paused = true)]
async fn made_up_hosts_take_no_places() {
    let door = Arc::new(Door::new(&[
        ("photos.s3.example", "52.219.0.1"),
        ("store.example", "192.168.0.1"),
        ("audio.s3.example", "52.219.0.2"),
    ]));
    let (photos, audio) = (
        "https://photos.s3.example; bucket=photos",
        "https://audio.s3.example; bucket=audio",
    );
    door.enter(photos).await.unwrap();
    let made_up: Vec<_> = (0..MAX_OPEN_HOSTS + 100)
        .map(|number| {
            let (door, bucket) = (Arc::clone(&door), format!("slow{number}"));
            let stated = format!("https://{bucket}.s3.example; bucket={bucket}");
            tokio::spawn(async move { door.enter(&stated).await })
        })
        .collect();
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let lookups = door.lookups();
    assert_eq!(lookups.len(), 1 + MAX_LOOKUPS, "{lookups:?}");
    // A host that was found before, and one that the operator named.
    door.enter(photos).await.unwrap();
    door.enter("https://store.example").await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 1);
    // One that nobody has looked up waits for at most as long as a look-up may take.
    let (refused, message) = door.enter(audio).await.unwrap_err();
    assert_eq!((refused, start.elapsed().as_secs()), (Refused::Address, 6));
    assert!(message.contains("at a time for the first time"), "{message}");
    let mut refused = 0;
    for made_up in made_up {
        // Those that began are the store's trouble.
        refused += usize::from(made_up.await.unwrap().is_err());
    }
    assert_eq!(refused, MAX_OPEN_HOSTS + 100 - MAX_LOOKUPS);
    // The system goes on with look-ups that nobody waits for.
    assert_eq!(door.enter(audio).await.unwrap_err().0, Refused::Address);
    door.connector.resolver.answers_all.cancel();
    door.enter(audio).await.unwrap();
    assert_eq!(door.dialled().len(), 4);
}

/// The operator chose the gateway's own store: nothing is checked.
#[tokio::test]
async fn the_gateways_own_store_may_be_anywhere() {
    let door = Door::new(&[("own.example", "127.0.0.1")]);
    let own = StoreConnector {
        check: None,
        ..door.connector.clone()
    };
    for url in ["http://own.example:1/", "http://127.0.0.1:1/", "http://[::1]:1/"] {
        let error = own.clone().connect(url.parse().unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), "recorded, and not connected");
    }
    assert_eq!(door.dialled(), ["127.0.0.1", "127.0.0.1", "::1"].map(addresses));
}
