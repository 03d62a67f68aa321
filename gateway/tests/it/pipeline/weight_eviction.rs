//! Weights stay in memory while the memory budget has room for them, and are loaded again when needed.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{distance, model_folder};
use serde_json::Value;

use super::{
    Lab,
    models::{floats, launch},
    photo,
};

/// Models of 28 MB and 45 MB.
const MODELS: [&str; 2] = ["inception_v1", "inception_v2"];

/// The models whose weights are in memory.
fn loaded(lab: &Lab) -> Result<Vec<String>> {
    let status: Value = serde_json::from_slice(&lab.gateway.page("/status.json")?.body)?;
    let models = status["models"].as_array().context("no models")?.iter();
    let loaded = models.filter(|model| model["loaded"] == true);
    let name = |model: &Value| model["name"].as_str().map(str::to_owned);
    loaded.map(|model| name(model).context("no name")).collect()
}

#[test]
fn weights_are_evicted_if_the_budget_fits_one_model() -> Result<()> {
    let folder = model_folder(&MODELS)?;
    for (budget, room_for_both) in [("60MiB", false), ("1GiB", true)] {
        let budget = format!("--memory-budget={budget}");
        let lab = launch(&folder, &["--threads=2", budget.as_str()])?;
        lab.put("cat.jpg", photo(230, 230, "jpeg"))?;
        ensure!(loaded(&lab)?.is_empty(), "nothing has run");
        let mut values: [Option<Vec<f32>>; 2] = [None, None];
        for round in 0..4 {
            let model = MODELS[round % 2];
            let pipeline = format!("decode | resize(224, 224) | to_float | model({model})");
            let answer = lab.get("cat.jpg", &pipeline, &[("accept", "application/octet-stream")])?;
            ensure!(answer.status == 200, "{model}: {}", answer.text());
            let found = floats(&answer.body);
            let before = values[round % 2].get_or_insert_with(|| found.clone());
            let difference = distance(&found, before);
            ensure!(difference <= 1e-5, "{model}, round {round}: {difference}");
            let expected = if room_for_both && round > 0 {
                MODELS.to_vec()
            } else {
                vec![model]
            };
            let resident = loaded(&lab)?;
            ensure!(resident == expected, "{budget}, round {round}: {resident:?}");
        }
    }
    Ok(())
}
