//! Tenants share the gateway fairly, independent of the size of their training batches.

use std::{fs, path::Path, thread, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use parking_lot::Mutex;
use pushdown::{
    Kind, Limits, Pipeline,
    step::model::ModelFolder,
    wire::{BatchReader, BatchRequest},
};
use pushdown_testkit::{Gateway, Keys, Raw, Weed, jain, model_folder, onnxruntime};

use super::{Lab, batch, binary, models::RUNTIME};

const MIB: u64 = 1 << 20;
const THREADS: u64 = 2;
/// Samples that a model runs at once.
const MICRO_BATCH_SAMPLES: u64 = 8;
/// Rows served during one turn of a tenant: a micro-batch on each thread.
const TURN_ROWS: u64 = THREADS * MICRO_BATCH_SAMPLES;
/// Samples of one request: a larger training batch is sent as several concurrent requests.
const MAX_REQUEST_SAMPLES: usize = 4000;
/// Samples in a training batch of each of the ten tenants, and the number of batches it reads. Tenants with small batches read
/// more of them, so that all tenants are active at the same time.
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
/// Objects with the same photo: more than a tenant has in flight.
const COPIES: usize = 32;
const PIPELINE: &str =
    "decode | resize(224, 224) | to_float | normalize(imagenet) | model(squeezenet) | cast(f16)";

/// The rows served to the ten tenants in order of receipt: the tenant, and the CPU time that the gateway reports for the row.
#[derive(Default)]
struct ServedRows(Mutex<Vec<(usize, Duration)>>);

impl ServedRows {
    fn count(&self) -> u64 {
        self.0.lock().len() as u64
    }

    fn add(&self, tenant: usize, rows: &[Duration]) {
        let rows = rows.iter().map(|time| (tenant, *time));
        self.0.lock().extend(rows);
    }

    /// CPU microseconds of each tenant, from the moment all have received a row until the first has received all its rows.
    fn micros_while_all_active(&self) -> Vec<u64> {
        let served = self.0.lock();
        let nth_row = |tenant, nth| {
            served
                .iter()
                .enumerate()
                .filter(move |(_, (owner, _))| *owner == tenant)
                .nth(nth)
        };
        let start = (0..TENANTS.len())
            .filter_map(|tenant| Some(nth_row(tenant, 0)?.0))
            .max();
        let end = TENANTS
            .iter()
            .enumerate()
            .filter_map(|(tenant, (size, count))| Some(nth_row(tenant, size * count - 1)?.0))
            .min();
        let window = &served[start.unwrap_or_default()..end.unwrap_or_default()];
        let rows_of = |tenant| window.iter().filter(move |(owner, _)| *owner == tenant);
        let micros = |tenant| rows_of(tenant).map(|(_, time)| time.as_micros()).sum::<u128>();
        let times = (0..TENANTS.len()).map(micros);
        times
            .map(|micros| u64::try_from(micros).unwrap_or(u64::MAX))
            .collect()
    }
}

/// Reads samples as a client does: samples refused with `SlowDown` are requested again.
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
            let mut times = Vec::new();
            for row in reader.push(chunk.into())? {
                rows += 1;
                match row.value {
                    Ok(_) => times.push(Duration::from_secs_f32(row.seconds)),
                    Err(error) if error.code == "SlowDown" => {
                        refused.push(request.samples[row.row as usize].clone());
                    }
                    Err(error) => bail!("row {}: {error}", row.row),
                }
            }
            served(&times);
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

/// Reads all training batches of one tenant.
fn train(lab: &Lab, request: &BatchRequest, tenant: usize, served: &ServedRows) -> Result<()> {
    let (size, count) = TENANTS[tenant];
    let samples: Vec<_> = request.samples.iter().cycle().take(size).cloned().collect();
    for _ in 0..count {
        thread::scope(|scope| {
            let requests: Vec<_> = samples
                .chunks(MAX_REQUEST_SAMPLES)
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

/// Ten tenants read training batches of 32 to 8,000 samples with a memory budget of the weights plus three micro-batches.
///
/// - All tenants finish.
/// - The Jain index over CPU seconds is at least 0.9 while all are active.
/// - A single request waits at most twice its fair turn, also after a tenant with 8,000 samples.
/// - The peak of resident memory is at most the budget plus the weights plus 150 MiB.
///
/// CPU seconds are those reported with each row. A turn is a micro-batch, whose samples all cost the same. A fair turn of a new
/// request is one turn for each active tenant, including its own.
#[test]
#[ignore = "a minute: make test-full"]
fn ten_tenants_get_equal_times_and_a_single_request_waits_a_fair_turn() -> Result<()> {
    let folder = model_folder(&["squeezenet"])?;
    let local_models = ModelFolder::open(folder.path(), RUNTIME.clone())?;
    let pipeline = Pipeline::parse_with(PIPELINE, &local_models)?;
    let weights = local_models
        .iter()
        .next()
        .context("no model")?
        .description()
        .bytes;
    let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/photos");
    let mut sample = 0;
    let mut objects = Vec::new();
    for name in PHOTOS {
        let object = fs::read(photos.join(name))?;
        let length = object.len() as u64;
        let peak = pipeline.peak_memory(0..pipeline.len(), &Kind::of_object(Some(length), &object));
        sample = sample.max(length + peak.context("the photo tells its size")?.working_bytes);
        // Requests for one object at a time share its computation.
        objects.extend((0..COPIES).map(|copy| (format!("{copy}-{name}"), object.clone())));
    }
    let budget = weights + 3 * MICRO_BATCH_SAMPLES * sample;

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
        "--cache-scope=tenant".to_owned(),
    ];
    let lab = Lab::with_gateway(Gateway::launch(binary(), flags)?, keys[0].clone())?;
    for (name, object) in &objects {
        lab.put(name, object.clone())?;
    }
    let names: Vec<_> = objects.into_iter().map(|(name, _)| name).collect();
    let requests = keys
        .iter()
        .map(|keys| batch::request_signed_by(keys, &lab, pipeline.clone(), &names));
    let mut requests = requests.collect::<Result<Vec<_>>>()?;
    let mut single = requests.pop().context("no request for the single sample")?;
    single.samples.truncate(1);
    let (lab, served) = (&lab, &ServedRows::default());
    // The first request pays for loading the weights: it must not count as the time of a tenant.
    read(lab, &single, |_| ())?;

    let waits = thread::scope(|scope| {
        let tenants: Vec<_> = requests
            .iter()
            .enumerate()
            .map(|(tenant, request)| scope.spawn(move || train(lab, request, tenant, served)))
            .collect();
        // One request at a time: first while all ten tenants are active, at the end only with the one that reads 8,000 samples.
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

    let times = served.micros_while_all_active();
    assert!(jain(&times) >= 0.9, "{} of {times:?} microseconds", jain(&times));
    assert!(waits.iter().any(|(active, _)| *active == 1), "{waits:?}");
    for (active, wait) in &waits {
        assert!(
            *wait <= 2 * (active + 1) * TURN_ROWS,
            "waited {wait} rows with {active} active tenants: {waits:?}"
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
