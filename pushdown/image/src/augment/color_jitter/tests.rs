use super::{
    super::statistics::{chi_square, kolmogorov_smirnov, torchvision},
    *,
};
use pushdown::Pipeline;

use crate::parse_step;
use pushdown_core::{Context, Sample};

fn step(arguments: &str) -> ColorJitter {
    parse_step(&format!("color_jitter({arguments})"))
}

fn draws(sample: u32) -> Draws {
    Draws::new(11, 3, format!("photos/{sample}.jpg").as_bytes(), 1)
}

/// The index of an order among all 24, with the adjustments numbered as in torchvision.
fn order_index(order: [usize; 4]) -> usize {
    let smaller_after = |index: usize| {
        order[index + 1..]
            .iter()
            .filter(|other| **other < order[index])
            .count()
    };
    smaller_after(0) * 6 + smaller_after(1) * 2 + smaller_after(2)
}

/// Compares 10,000 draws with `ColorJitter(0.4, 0.4, 0.4, 0.1).get_params`.
#[test]
fn draws_have_torchvisions_distribution() {
    type Factor = fn(&Adjustments) -> Option<f64>;

    let step = step("0.4, 0.4, 0.4, 0.1");
    let ours: Vec<Adjustments> = (0..10_000).map(|sample| step.draw(draws(sample))).collect();
    let theirs = torchvision::<4>("color_jitter");
    assert_eq!(theirs.len(), ours.len());
    let factors: [(&str, Factor); 4] = [
        ("brightness", |drawn| drawn.brightness),
        ("contrast", |drawn| drawn.contrast),
        ("saturation", |drawn| drawn.saturation),
        ("hue", |drawn| drawn.hue),
    ];
    for (column, (name, factor)) in factors.into_iter().enumerate() {
        let ours: Vec<f64> = ours.iter().filter_map(factor).collect();
        let theirs: Vec<f64> = theirs.iter().map(|row| row[column]).collect();
        let p = kolmogorov_smirnov(&ours, &theirs);
        assert!(p > 0.001, "{name}: p = {p}");
    }

    let mut counts = [[0_usize; 24]; 2];
    for drawn in &ours {
        counts[0][order_index(drawn.order.map(|adjustment| adjustment as usize))] += 1;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 3")]
    for order in torchvision::<4>("color_jitter_order") {
        counts[1][order_index(order.map(|adjustment| adjustment as usize))] += 1;
    }
    let uniform = [10_000; 24];
    for (statistic, what) in [
        (chi_square(&counts[0], &counts[1]), "ours against torchvision's"),
        (chi_square(&counts[0], &uniform), "ours against uniform"),
    ] {
        assert!(
            statistic < 49.73,
            "{what}: {statistic}, the critical value of p = 0.001 at 23 degrees of freedom"
        );
    }
}

#[test]
fn ranges_match_torchvision() {
    let ends = |range: Option<FactorRange>| range.map(|range| (range.low, range.high));
    let jitter = step("brightness=0.25, contrast=[0.5, 2], saturation=3, hue=0.5");
    assert_eq!(ends(jitter.brightness), Some((0.75, 1.25)));
    assert_eq!(ends(jitter.contrast), Some((0.5, 2.0)));
    assert_eq!(ends(jitter.saturation), Some((0.0, 4.0)), "no factor is negative");
    assert_eq!(ends(jitter.hue), Some((-0.5, 0.5)));
    let nothing = step("brightness=0, contrast=[1, 1], hue=0");
    assert_eq!(
        [
            nothing.brightness,
            nothing.contrast,
            nothing.saturation,
            nothing.hue
        ],
        [None; 4]
    );
    assert_eq!(ends(step("hue=[0.1, 0.1]").hue), Some((0.1, 0.1)));
}

#[test]
fn adjustments_match_torchvision() {
    let pixels = |arguments: &str, pixels: &[u8]| {
        let pipeline = Pipeline::parse(&format!("decode | color_jitter({arguments})")).expect(arguments);
        let image = Image::new(
            u32::try_from(pixels.len() / 3).expect("small"),
            1,
            pixels.to_vec(),
        )
        .expect("sizes agree");
        match pipeline.run(
            1..2,
            Sample::Image(image),
            &Context::new(b"id").with_randomness(1, 2),
        ) {
            Ok(Sample::Image(image)) => image.into_pixels(),
            other => panic!("expected an image, found {other:?}"),
        }
    };
    let photo = [200, 100, 50, 0, 0, 0, 255, 255, 255];
    assert_eq!(
        pixels("brightness=[0.5, 0.5]", &photo),
        [100, 50, 25, 0, 0, 0, 127, 127, 127],
        "rounded towards zero"
    );
    assert_eq!(
        pixels("brightness=[2, 2]", &photo),
        [255, 200, 100, 0, 0, 0, 255, 255, 255],
        "clamped"
    );
    assert_eq!(
        pixels("saturation=[0, 0]", &photo),
        [124, 124, 124, 0, 0, 0, 254, 254, 254],
        "0.2989 + 0.587 + 0.114 is less than 1"
    );
    assert_eq!(
        pixels("contrast=[0, 0]", &photo),
        [126; 9],
        "the mean of the grey image"
    );
    assert_eq!(
        pixels("hue=[0.5, 0.5]", &[200, 0, 0]),
        [0, 200, 200],
        "half a turn"
    );
    assert_eq!(pixels("hue=[0.5, 0.5]", &[7, 7, 7]), [7, 7, 7], "grey has no hue");
    assert_eq!(pixels("brightness=0", &photo), photo);
}

/// A change of these values changes the draws of all recorded epochs: raise the version of the family with it.
#[test]
fn golden_adjustments() {
    let step = step("0.4, 0.4, 0.4, 0.1");
    insta::assert_debug_snapshot!((0..3).map(|sample| step.draw(draws(sample))).collect::<Vec<_>>());
}
