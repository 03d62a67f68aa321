//! Tenants share the gateway, whatever their training batches are.

use std::{fs, path::Path, thread, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use parking_lot::Mutex;
use pushdown::{
    Kind, Limits, Pipeline,
    step::model::Folder,
    wire::{BatchReader, BatchRequest},
};
use pushdown_testkit::{Gateway, Keys, Raw, Weed, jain, model_folder, onnxruntime};

use super::{Lab, batch, binary, models::RUNTIME};

const MIB: u64 = 1 << 20;
const THREADS: u64 = 2;
/// Samples that layers run at once.
const MICRO_BATCH: u64 = 8;
/// Rows that are served while somebody has a turn: a micro-batch on each thread.
const TURN: u64 = THREADS * MICRO_BATCH;
/// Samples of one request: a larger training batch is several requests at a time.
const REQUEST: usize = 4000;
/// Training batches of the ten, and how many each of them reads: the small ones as many as keep all of them busy for a
/// while.
const TENANTS: [(usize, usize); 10] = [
    (32, 8),
    (48, 5),
    (64, 4),
    (96, 3),
    (128, 2),
    (192, 2),
    (256, 1),
    (384, 1),
    (512, 1),
    (8000, 1),
];
const PHOTOS: [&str; 4] = [
    "jpeg_420.jpg",
    "jpeg_422.jpg",
    "jpeg_444.jpg",
    "jpeg_portrait.jpg",
];
const PIPELINE: &str =
    "decode | resize(224, 224) | to_float | normalize(imagenet) | model(squeezenet) | cast(f16)";

/// The rows that were served to the ten, in their order: whose, and the CPU time that the gateway tells of it.
#[derive(Default)]
struct Served(Mutex<Vec<(usize, Duration)>>);

impl Served {
    fn count(&self) -> u64 {
        self.0.lock().len() as u64
    }

    fn add(&self, tenant: usize, rows: &[Duration]) {
        let rows = rows.iter().map(|time| (tenant, *time));
        self.0.lock().extend(rows);
    }

    /// CPU microseconds of each, from the moment when all have begun to the moment when one has all of its own.
    fn while_all_are_active(&self) -> Vec<u64> {
        let served = self.0.lock();
        let place = |tenant, nth| {
            served
                .iter()
                .enumerate()
                .filter(move |(_, (of, _))| *of == tenant)
                .nth(nth)
        };
        let begun = (0..TENANTS.len())
            .filter_map(|tenant| Some(place(tenant, 0)?.0))
            .max();
        let ended = TENANTS
            .iter()
            .enumerate()
            .filter_map(|(tenant, (size, count))| Some(place(tenant, size * count - 1)?.0))
            .min();
        let window = &served[begun.unwrap_or_default()..ended.unwrap_or_default()];
        let of = |tenant| window.iter().filter(move |(of, _)| *of == tenant);
        let micros = |tenant| of(tenant).map(|(_, time)| time.as_micros()).sum::<u128>();
        let shares = (0..TENANTS.len()).map(micros);
        shares
            .map(|micros| u64::try_from(micros).unwrap_or(u64::MAX))
            .collect()
    }
}

/// Reads samples as a client does: those that were refused for want of room are asked for again.
fn read(lab: &Lab, request: &BatchRequest, mut served: impl FnMut(&[Duration])) -> Result<()> {
    let mut request = request.clone();
    while !request.samples.is_empty() {
        let mut connection = Raw::connect(lab.address())?;
        let post = batch::post(lab, serde_json::to_vec(&request)?);
        connection.write(&[post.head(), post.body].concat())?;
        let mut answer = connection.begin("POST")?;
        ensure!(answer.head.status == 200, "{:?}", answer.head);
        let mut reader = BatchReader::new(Limits::default());
        let (mut rows, mut refused) = (0, Vec::new());
        while let Some(chunk) = answer.chunk()? {
            let mut well = Vec::new();
            for row in reader.push(chunk.into())? {
                rows += 1;
                match row.value {
                    Ok(_) => well.push(Duration::from_secs_f32(row.seconds)),
                    Err(error) if error.code == "SlowDown" => {
                        refused.push(request.samples[row.row as usize].clone());
                    }
                    Err(error) => bail!("row {}: {error}", row.row),
                }
            }
            served(&well);
        }
        reader.finish()?;
        ensure!(
            rows == request.samples.len(),
            "{rows} of {} rows",
            request.samples.len()
        );
        request.samples = refused;
    }
    Ok(())
}

/// All training batches of one of the ten.
fn train(lab: &Lab, request: &BatchRequest, tenant: usize, served: &Served) -> Result<()> {
    let (size, count) = TENANTS[tenant];
    let samples: Vec<_> = request.samples.iter().cycle().take(size).cloned().collect();
    for _ in 0..count {
        thread::scope(|scope| {
            let requests: Vec<_> = samples
                .chunks(REQUEST)
                .map(|samples| {
                    let mut request = request.clone();
                    request.samples = samples.to_vec();
                    scope.spawn(move || read(lab, &request, |rows| served.add(tenant, rows)))
                })
                .collect();
            requests
                .into_iter()
                .try_for_each(|request| request.join().map_err(|_| anyhow!("panicked"))?)
        })?;
    }
    Ok(())
}

/// "Ten tenants with training batches of 32 to 8,000, a memory budget of weights plus three micro-batches: all finish,
/// Jain index over CPU seconds at least 0.9 while all are active, a tenant with one request waits at most twice its fair
/// turn behind one with 8,000, peak resident memory within the budget plus weights plus 150 MiB."
///
/// CPU seconds are those that each row tells of. A turn is a micro-batch, in which all samples cost the same, and whoever comes has a fair turn
/// if each who is active has one, itself included.
#[test]
fn ten_tenants_get_equal_shares_and_one_request_waits_its_turn() -> Result<()> {
    let folder = model_folder(&["squeezenet"])?;
    let here = Folder::open(folder.path(), RUNTIME.clone())?;
    let pipeline = Pipeline::parse_with(PIPELINE, &here)?;
    let weights = here.iter().next().context("no model")?.description().bytes;
    let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/photos");
    let mut sample = 0;
    let mut objects = Vec::new();
    for name in PHOTOS {
        let object = fs::read(photos.join(name))?;
        let length = object.len() as u64;
        let peak = pipeline.peak(0..pipeline.len(), &Kind::of_object(Some(length), &object));
        sample = sample.max(length + peak.context("the photo tells its size")?.working);
        objects.push((name.to_owned(), object));
    }
    let budget = weights + 3 * MICRO_BATCH * sample;

    let keys: Vec<_> = (0..=TENANTS.len())
        .map(|index| Keys::new(&format!("tenant{index}"), &format!("secretoftenant{index}")))
        .collect();
    let weed = Weed::launch(&keys)?;
    let flags = [
        format!("--upstream=http://{}", weed.address()),
        format!("--models={}", folder.path().display()),
        format!("--onnxruntime={}", onnxruntime().display()),
        format!("--memory-budget={budget}"),
        format!("--threads={THREADS}"),
    ];
    let lab = Lab::with(Gateway::launch(binary(), flags)?, keys[0].clone())?;
    for (name, object) in &objects {
        lab.put(name, object.clone())?;
    }
    let names: Vec<_> = objects.into_iter().map(|(name, _)| name).collect();
    let requests = keys
        .iter()
        .map(|keys| batch::request_of(keys, &lab, pipeline.clone(), &names));
    let mut requests = requests.collect::<Result<Vec<_>>>()?;
    let mut single = requests.pop().context("one more than the ten")?;
    single.samples.truncate(1);
    let (lab, served) = (&lab, &Served::default());
    // Weights are loaded once, on whoever comes first: that is nobody's share.
    read(lab, &single, |_| ())?;

    let waits = thread::scope(|scope| {
        let tenants: Vec<_> = requests
            .iter()
            .enumerate()
            .map(|(tenant, request)| scope.spawn(move || train(lab, request, tenant, served)))
            .collect();
        // One request at a time, first among all of the ten, then behind the 8,000 alone.
        let mut waits = Vec::new();
        loop {
            thread::sleep(Duration::from_millis(500));
            let active = tenants.iter().filter(|tenant| !tenant.is_finished()).count() as u64;
            if active == 0 {
                break;
            }
            let before = served.count();
            read(lab, &single, |_| ())?;
            waits.push((active, served.count() - before));
        }
        tenants
            .into_iter()
            .try_for_each(|tenant| tenant.join().map_err(|_| anyhow!("panicked"))?)?;
        anyhow::Ok(waits)
    })?;

    let shares = served.while_all_are_active();
    assert!(
        jain(&shares) >= 0.9,
        "{} of {shares:?} microseconds",
        jain(&shares)
    );
    assert!(waits.iter().any(|(active, _)| *active == 1), "{waits:?}");
    for (active, wait) in &waits {
        assert!(
            *wait <= 2 * (active + 1) * TURN,
            "{wait} rows behind {active}: {waits:?}"
        );
    }
    let peak = lab.gateway.peak_memory()?;
    assert!(
        peak <= budget + weights + 150 * MIB,
        "{} MiB with a budget of {}",
        peak / MIB,
        budget / MIB
    );
    Ok(())
}
