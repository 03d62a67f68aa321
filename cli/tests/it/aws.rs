//! A store that addresses and refuses as AWS does, with sessions of AWS's chain of credentials that end while it is read.

use std::{process::Output, time::Duration};

use pushdown_testkit::{
    ACCESS_KEY, AwsFront, Gateway, Keys, Objects, Parquet, RelayAction, SECRET_KEY, World, faulty_relay,
    find_gateway, late_relay, photos,
};

use super::cli::pushdown;

const HOST: &str = "photos.s3.us-east-1.localhost";
/// Of sessions that end within the test, at a whole second.
const SHORT_LIFETIME: Duration = Duration::from_secs(4);

/// Runs a command with sessions of the front, and no other credentials.
fn run_command(world: &World, front: &AwsFront, arguments: &[&str]) -> Output {
    pushdown(&[arguments, &["--addressing-style", "virtual"]].concat())
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .env("AWS_CONFIG_FILE", world.folder().join("none"))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONTAINER_CREDENTIALS_FULL_URI", front.credentials_url())
        .env("AWS_ENDPOINT_URL_S3", front.url())
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap()
}

fn front_of(world: &World, lifetime: Duration) -> AwsFront {
    let keys = Keys::new(ACCESS_KEY, SECRET_KEY);
    AwsFront::start(world.gateway.store().unwrap(), &keys, "us-east-1", lifetime).unwrap()
}

fn shown(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
#[ignore = "several sessions; the read through a gateway has them as well"]
fn a_read_over_several_sessions_has_no_failure() {
    let world = World::with_photos(8).unwrap();
    let front = front_of(&world, SHORT_LIFETIME);
    let arguments = "read s3://photos/ --pipeline decode --plain --batch-size 1 --epochs 8 --step-ms 200";
    let output = run_command(&world, &front, &arguments.split(' ').collect::<Vec<_>>());
    let shown = shown(&output);
    assert!(output.status.success() && shown.contains("64 samples"), "{shown}");
    let record = front.record();
    assert!(record.refusals.is_empty(), "{record:?}");
    assert_eq!(record.hosts.len(), 1, "{record:?}");
    assert!(record.requests_to(HOST) >= 64, "{record:?}");
    // Three lifetimes pass, and each session is replaced in the last fifth of its life, which begins up to a second before the life
    // that its source names.
    let issued = front.issued().len();
    assert!((3..=16).contains(&issued), "{issued} sessions");
    for session in front.issued() {
        assert!(!shown.contains(&session.token.unwrap()), "{shown}");
    }
}

/// A gateway that fetches what is signed for the store behind the front.
fn gateway_beside(front: &AwsFront) -> Gateway {
    let flags = [
        format!(
            "--allow-store=http://*.s3.us-east-1.localhost:{}",
            front.address().port()
        ),
        "--allow-store-network=127.0.0.0/8".to_owned(),
    ];
    Gateway::launch(&find_gateway().unwrap(), &flags).unwrap()
}

#[test]
fn a_read_through_a_gateway_over_several_sessions_has_no_failure() {
    let world = World::with_photos(8).unwrap();
    let front = front_of(&world, SHORT_LIFETIME);
    let gateway = gateway_beside(&front);
    let url = format!("http://{}", gateway.listen());
    let arguments = format!(
        "read s3://photos/ --pipeline decode|resize(8,8) --gateway {url} --batch-size 1 --epochs 8 --step-ms 200"
    );
    let output = run_command(&world, &front, &arguments.split(' ').collect::<Vec<_>>());
    let shown = shown(&output);
    assert!(output.status.success() && shown.contains("64 samples"), "{shown}");
    assert!(
        shown.contains(&format!("from the gateway {url}: received")),
        "{shown}"
    );
    let record = front.record();
    assert!(record.refusals.is_empty(), "{record:?}");
    assert!(record.requests_to(HOST) >= 64, "{record:?}");
    let log = gateway.log().unwrap();
    for session in front.issued() {
        for secret in [session.token.unwrap(), session.secret] {
            assert!(!shown.contains(&secret) && !log.contains(&secret), "{shown}{log}");
        }
    }
    assert!(!log.contains("X-Amz-Signature="), "{log}");
}

#[test]
fn a_signature_that_ended_at_the_gateway_is_signed_again() {
    let world = World::with_photos(4).unwrap();
    let front = front_of(&world, SHORT_LIFETIME);
    let gateway = gateway_beside(&front);
    // The first batch waits until its session has ended.
    let relay = faulty_relay(gateway.listen(), |earlier| {
        if earlier == 0 {
            std::thread::sleep(SHORT_LIFETIME + Duration::from_secs(1));
        }
        RelayAction::Forward
    })
    .unwrap();
    let arguments = format!(
        "read s3://photos/ --pipeline decode|resize(8,8) --gateway http://{} --batch-size 4",
        relay.address()
    );
    let output = run_command(&world, &front, &arguments.split(' ').collect::<Vec<_>>());
    let shown = shown(&output);
    assert!(output.status.success() && shown.contains("0 errors"), "{shown}");
    let record = front.record();
    assert_eq!(record.refusals.values().sum::<usize>(), 4, "{record:?}");
}

/// The trial passes, and the first part waits until the session of its signatures has ended.
#[test]
fn a_part_whose_signatures_ended_at_the_gateway_is_made_again() {
    let photos = photos().unwrap().into_iter().take(4);
    let photos = photos.map(|(name, bytes)| (format!("train/{name}"), bytes));
    let world = World::with_objects(photos.collect()).unwrap();
    let front = front_of(&world, SHORT_LIFETIME);
    let gateway = gateway_beside(&front);
    let relay = faulty_relay(gateway.listen(), |earlier| {
        if earlier == 1 {
            std::thread::sleep(SHORT_LIFETIME + Duration::from_secs(1));
        }
        RelayAction::Forward
    })
    .unwrap();
    let arguments = format!(
        "materialize s3://photos/train/ s3://photos/out/ --pipeline decode|resize(8,8)|encode(png) --format wds --gateway http://{}",
        relay.address()
    );
    let output = run_command(&world, &front, &arguments.split(' ').collect::<Vec<_>>());
    let shown = shown(&output);
    assert!(
        output.status.success() && shown.contains("4 samples in 1 part"),
        "{shown}"
    );
    let record = front.record();
    assert!(record.refusals.values().sum::<usize>() > 0, "{record:?}");
}

/// A value, the rows of one table, and those of several.
#[test]
fn values_and_tables_whose_signature_ended_at_the_gateway_are_signed_again() {
    let table = Parquet {
        rows: 1000,
        noise: 1,
        row_group: 500,
    };
    let (key, photo) = photos().unwrap().pop_first().unwrap();
    let table = table.write().unwrap();
    let world = World::with_objects(Objects::from([
        (key.clone(), photo),
        ("t/a.parquet".to_owned(), table.clone()),
        ("t/b.parquet".to_owned(), table),
    ]));
    let world = world.unwrap();
    let rows = "--pipeline select(columns=[n],where='n>=990') --format csv";
    for command in [
        format!("get s3://photos/{key} --pipeline decode|resize(8,8) --accept npy"),
        format!("get s3://photos/t/a.parquet {rows}"),
        format!("get s3://photos/t/ {rows}"),
    ] {
        let expected = format!("{command} --plain --endpoint-url {}", world.endpoint());
        let expected = pushdown(&expected.split(' ').collect::<Vec<_>>())
            .env("AWS_REGION", "us-east-1")
            .output()
            .unwrap();
        assert!(expected.status.success(), "{}", shown(&expected));
        let front = front_of(&world, SHORT_LIFETIME);
        let gateway = gateway_beside(&front);
        let relay = late_relay(gateway.listen(), SHORT_LIFETIME + Duration::from_secs(1)).unwrap();
        let command = format!("{command} --gateway http://{}", relay.address());
        let output = run_command(&world, &front, &command.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{}", shown(&output));
        assert!(output.stdout == expected.stdout, "{command}: {}", shown(&output));
        let record = front.record();
        assert!(record.refused("ExpiredToken") > 0, "{record:?}");
        assert!(front.issued().len() > 1);
    }
}

#[test]
fn a_refused_session_is_replaced_by_the_next_one() {
    let world = World::with_photos(8).unwrap();
    let front = front_of(&world, Duration::from_mins(10));
    let arguments = "read s3://photos/ --pipeline decode --plain --batch-size 1 --step-ms 300";
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| run_command(&world, &front, &arguments.split(' ').collect::<Vec<_>>()));
        while front.issued().is_empty() || front.record().forwarded < 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        front.revoke_sessions();
        let output = reading.join().unwrap();
        assert!(output.status.success(), "{}", shown(&output));
    });
    assert!(front.issued().len() > 1);
}
