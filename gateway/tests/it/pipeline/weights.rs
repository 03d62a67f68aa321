//! Weights stay in memory as long as the budget has room for them, and come again when they are asked for.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{distance, model_folder};
use serde_json::Value;

use super::{
    Lab,
    models::{floats, lab},
    photo,
};

/// Of 28 and 45 MB.
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
fn weights_give_way_to_those_that_run_where_there_is_room_for_one() -> Result<()> {
    let folder = model_folder(&MODELS)?;
    for (budget, room_for_both) in [("60MiB", false), ("1GiB", true)] {
        let budget = format!("--memory-budget={budget}");
        let lab = lab(&folder, &["--threads=2", budget.as_str()])?;
        lab.put("cat.jpg", photo(230, 230, "jpeg"))?;
        ensure!(loaded(&lab)?.is_empty(), "nothing has run");
        let mut values: [Option<Vec<f32>>; 2] = [None, None];
        for turn in 0..4 {
            let model = MODELS[turn % 2];
            let pipeline = format!("decode | resize(224, 224) | to_float | model({model})");
            let answer = lab.get("cat.jpg", &pipeline, &[("accept", "application/octet-stream")])?;
            ensure!(answer.status == 200, "{model}: {}", answer.text());
            let found = floats(&answer.body);
            let before = values[turn % 2].get_or_insert_with(|| found.clone());
            let far = distance(&found, before);
            ensure!(far <= 1e-5, "{model}, turn {turn}: {far}");
            let expected = if room_for_both && turn > 0 {
                MODELS.to_vec()
            } else {
                vec![model]
            };
            let here = loaded(&lab)?;
            ensure!(here == expected, "{budget}, turn {turn}: {here:?}");
        }
    }
    Ok(())
}
