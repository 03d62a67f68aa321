//! What a gateway makes of parts, and how much of it at once.

use std::{thread, time::Instant};

use pushdown::wire::PartAction;
use pushdown_testkit::{Gateway, PolicyStore, eventually};

use super::*;
use crate::it::pipeline::{Lab, memory_bounds::flat_png};

const MIB: u64 = 1 << 20;

type Change = fn(&mut BatchRequest, &mut PartRequest);

fn caller(lab: &Lab) -> Caller {
    Caller {
        keys: lab.keys.clone(),
        gateway: lab.address(),
    }
}

/// The same photo under different keys.
fn copies(caller: &Caller, count: u32, content: &[u8]) -> Result<Vec<Object>> {
    let objects = (0..count).map(|number| caller.put(&format!("{BUCKET}/{PREFIX}{number}"), content));
    objects.collect()
}

fn check_released(gateway: &Gateway) -> Result<()> {
    eventually("all memory is released", Duration::from_secs(20), || {
        let reserved = gateway.metric("pushdown_memory_reserved_bytes")?;
        Ok((reserved < 1.0).then_some(()))
    })
}

/// Also if the values of one moment would take all of the budget: then there is no memory for the part, and none for its next values.
#[test]
fn a_part_that_is_too_large_is_refused_with_what_to_do() -> Result<()> {
    let lab = Lab::new(&["--memory-budget=16MiB", "--queue-wait=5s"])?;
    let caller = caller(&lab);
    // Values of 1.9 MB.
    let objects = copies(&caller, 32, &flat_png(800)?)?;
    let request = caller.part("decode".parse()?, PartFormat::Wds, &objects)?;
    let started = Instant::now();
    let part = refused(&caller.ask(&request)?)?;
    assert_eq!(
        (part.action, part.code.as_str()),
        (PartAction::Make, "EntityTooLarge"),
        "{}",
        part.message
    );
    for text in [
        "expected at most 2097152 bytes, an eighth of the gateway's memory budget",
        "make parts of fewer samples",
    ] {
        ensure!(part.message.contains(text), "{}", part.message);
    }
    ensure!(started.elapsed() < Duration::from_secs(5), "it waited for memory");
    check_released(&lab.gateway)?;
    assert_eq!(caller.get(PART)?, None);
    let request = caller.part("decode".parse()?, PartFormat::Wds, &objects[..1])?;
    assert_eq!(written(&caller.ask(&request)?)?.samples, 1);
    Ok(())
}

#[test]
fn a_third_part_waits_for_one_of_two() -> Result<()> {
    let store = PolicyStore::start()?;
    let path = format!("{BUCKET}/{PREFIX}0.jpg");
    store.put(&path, "\"1\"", photo(80, 60, "jpeg"));
    let upstream = format!("--upstream=http://{}", store.address());
    let gateway = Gateway::launch(binary(), [upstream.as_str(), "--queue-wait=2s"])?;
    let caller = Caller {
        keys: Keys::new("key", "secret"),
        gateway: gateway.listen(),
    };
    let object = Object {
        path,
        etag: "\"1\"".to_owned(),
        content: Vec::new(),
    };
    let mut request = trial(&caller.part(RESIZE.parse()?, PartFormat::Wds, &[object])?);
    request.samples[0].signature = Some(pushdown_testkit::GOOD_SIGNATURE.to_owned());
    store.set_stalled(true);
    thread::scope(|scope| {
        let two = [(); 2].map(|()| scope.spawn(|| written(&caller.ask(&request)?)));
        // They share the object, and each asks for itself.
        store.wait_until(|sent| sent.objects + sent.not_modified == 2)?;
        let started = Instant::now();
        let third = caller.ask(&request)?;
        assert_eq!(
            (third.status, third.element("Code").as_deref()),
            (503, Some("SlowDown"))
        );
        ensure!(
            third.text().contains("the gateway makes 2 other parts"),
            "{}",
            third.text()
        );
        ensure!(third.header("retry-after").is_some(), "no time to wait is stated");
        ensure!(started.elapsed() >= Duration::from_secs(2), "it did not wait");
        assert_eq!(store.requests().len(), 2);
        // One that still waits when a place is free is made.
        let fourth = scope.spawn(|| written(&caller.ask(&request)?));
        thread::sleep(Duration::from_millis(500));
        ensure!(!fourth.is_finished());
        store.set_stalled(false);
        for part in two.into_iter().chain([fourth]) {
            let part = part.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            assert_eq!(part.samples, 1);
        }
        anyhow::Ok(())
    })
}

/// Parts as large as they may be, and batches of values that are larger than these.
#[test]
fn law5_parts_and_batches_together_stay_within_the_budget() -> Result<()> {
    const BUDGET: u64 = 768 * MIB;
    /// Buffers of connections, and memory that the allocator keeps.
    const CONSTANT: u64 = 128 * MIB;
    let lab = Lab::new(&["--memory-budget=768MiB", "--queue-wait=60s"])?;
    let caller = caller(&lab);
    // Values of 2.4 MB: 99.6 MB of at most 100.6 MB.
    let objects = copies(&caller, 41, &flat_png(900)?)?;
    let large = caller.put(&format!("{BUCKET}/{PREFIX}large"), flat_png(4000)?)?;
    let resize = "decode | resize(900, 900)";
    // As large as Parquet may be in this budget.
    let floats = "decode | resize(280, 280) | to_float";
    let parts = [
        caller.part(resize.parse()?, PartFormat::Wds, &objects)?,
        caller.part(floats.parse()?, PartFormat::Parquet, &objects)?,
    ];
    let mut batch = caller.part("decode".parse()?, PartFormat::Wds, &vec![large; 4])?;
    batch.part = None;
    let idle = lab.gateway.reset_peak_memory()?;
    thread::scope(|scope| {
        let batches = [(); 2].map(|()| scope.spawn(|| caller.ask(&batch)));
        let made = (0..4).map(|number| {
            let request = trial(&parts[number % 2]);
            let caller = &caller;
            scope.spawn(move || written(&caller.ask(&request)?))
        });
        for part in made.collect::<Vec<_>>() {
            let part = part.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            assert_eq!(part.samples, 41);
        }
        for batch in batches {
            let answer = batch.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            assert_eq!(answer.status, 200);
        }
        anyhow::Ok(())
    })?;
    let grown = lab.gateway.peak_memory()?.saturating_sub(idle);
    ensure!(grown < BUDGET + CONSTANT, "{} MiB", grown / MIB);
    check_released(&lab.gateway)
}

#[test]
fn requests_that_cannot_become_a_part_are_refused_before_any_read() -> Result<()> {
    let store = PolicyStore::start()?;
    let upstream = format!("--upstream=http://{}", store.address());
    let gateway = Gateway::launch(binary(), [upstream.as_str()])?;
    let caller = Caller {
        keys: Keys::new("key", "secret"),
        gateway: gateway.listen(),
    };
    let objects = ["0.jpg", "1.jpg"].map(|name| Object {
        path: format!("{BUCKET}/{PREFIX}{name}"),
        etag: "\"1\"".to_owned(),
        content: Vec::new(),
    });
    let good = caller.part(RESIZE.parse()?, PartFormat::Wds, &objects)?;
    let changes: [(Change, u16, &str, &str); 5] = [
        (
            |_, part| part.engine = Some("decode=3 resample=4".to_owned()),
            412,
            "PreconditionFailed",
            "expected engine `decode=3 resample=4`, found `decode=4 resample=4`",
        ),
        (
            |_, part| part.prefix = "test/".to_owned(),
            400,
            "InvalidRequest",
            "expected a key in UTF-8 that begins with `test/`",
        ),
        (
            |_, part| part.prefix = "train/0.jpg".to_owned(),
            400,
            "InvalidRequest",
            "train/1.jpg",
        ),
        (
            |request, _| request.samples[1] = request.samples[0].clone(),
            400,
            "InvalidRequest",
            "expected each sample once in a part, found &quot;0.jpg&quot; twice",
        ),
        (
            |request, part| {
                part.format = PartFormat::Parquet;
                request.pipeline = Pipeline::parse("decode | resize(2000, 2000)").unwrap();
            },
            413,
            "EntityTooLarge",
            "the values are too large for a part in this format",
        ),
    ];
    for (change, status, code, text) in changes {
        let mut request = good.clone();
        let mut part = request.part.take().context("no part")?;
        change(&mut request, &mut part);
        request.part = Some(part);
        let answer = caller.ask(&request)?;
        assert_eq!(
            (answer.status, answer.element("Code").as_deref()),
            (status, Some(code)),
            "{text}"
        );
        ensure!(
            answer.text().contains(text) || answer.text().contains(&text.replace("&quot;", "\"")),
            "{}",
            answer.text()
        );
    }
    assert_eq!(store.requests().len(), 0);
    // The engine that an answer states is the one that a request may name.
    let mut same = good.clone();
    let engine = "decode=4 resample=4";
    same.part.as_mut().context("no part")?.engine = Some(engine.to_owned());
    let answer = caller.ask(&trial(&same))?;
    assert_eq!(answer.header("x-pushdown-engine"), Some(engine));
    assert_eq!(refused(&answer)?.code, "SignatureDoesNotMatch");
    Ok(())
}
