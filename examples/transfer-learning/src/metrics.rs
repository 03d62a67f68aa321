//! Quality metrics of scores.

/// Scores from this value on are positive: even odds.
const EVEN: f64 = 0.0;

/// The class that a score predicts.
pub(crate) fn prediction(score: f64) -> bool {
    score >= EVEN
}

/// The mean of the shares of positives and of negatives that are predicted correctly. `None` if a class is empty.
pub(crate) fn balanced_accuracy(scores: &[f64], labels: &[bool]) -> Option<f64> {
    let right_of = |class: bool| {
        let scores = scores.iter().zip(labels).filter(|(_, label)| **label == class);
        let (mut right, mut all) = (0_u32, 0_u32);
        for (score, _) in scores {
            right += u32::from(prediction(*score) == class);
            all += 1;
        }
        (all > 0).then(|| f64::from(right) / f64::from(all))
    };
    Some(f64::midpoint(right_of(true)?, right_of(false)?))
}

/// The area under the receiver operating characteristic: how often a positive has a higher score than a negative; equal
/// scores count half. `None` if a class is empty.
pub(crate) fn auc(scores: &[f64], labels: &[bool]) -> Option<f64> {
    let mut order: Vec<(f64, bool)> = scores.iter().copied().zip(labels.iter().copied()).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut lower, mut negatives, mut positives) = (0.0, 0.0, 0.0);
    for equal in order.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let above = count(equal, true);
        let below = count(equal, false);
        lower += above * (negatives + below / 2.0);
        negatives += below;
        positives += above;
    }
    let pairs = positives * negatives;
    (pairs > 0.0).then(|| lower / pairs)
}

fn count(scores: &[(f64, bool)], class: bool) -> f64 {
    scores
        .iter()
        .filter(|(_, label)| *label == class)
        .map(|_| 1.0)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?}, {expected}");
    }

    #[test]
    fn each_class_counts_half() {
        let labels = [true, false, false, false];
        near(balanced_accuracy(&[1.0, -1.0, -1.0, -1.0], &labels), 1.0);
        near(balanced_accuracy(&[-1.0, -1.0, -1.0, -1.0], &labels), 0.5);
        near(balanced_accuracy(&[1.0, 1.0, -1.0, -1.0], &labels), 5.0 / 6.0);
        near(balanced_accuracy(&[0.0, -0.1, -1.0, -1.0], &labels), 1.0);
        assert_eq!(balanced_accuracy(&[1.0], &[true]), None);
        assert_eq!(balanced_accuracy(&[], &[]), None);
    }

    #[test]
    fn the_area_is_the_share_of_pairs_in_order() {
        near(auc(&[0.1, 0.4, 0.35, 0.8], &[false, false, true, true]), 0.75);
        near(auc(&[3.0, 2.0, 1.0], &[true, false, false]), 1.0);
        near(auc(&[1.0, 2.0, 3.0], &[true, false, false]), 0.0);
        assert_eq!(auc(&[1.0, 2.0], &[true, true]), None);
    }

    #[test]
    fn equal_scores_count_half() {
        near(auc(&[1.0, 1.0], &[true, false]), 0.5);
        near(auc(&[1.0; 5], &[true, false, false, true, false]), 0.5);
        // Of six pairs three are in order and two are equal.
        near(
            auc(&[2.0, 1.0, 1.0, 1.0, 0.0], &[true, true, false, false, true]),
            3.0 / 6.0,
        );
    }

    #[test]
    fn the_area_equals_the_mean_over_all_pairs() {
        let scores: Vec<f64> = (0..60_u32).map(|index| f64::from(index * 37 % 11)).collect();
        let labels: Vec<bool> = (0..60).map(|index| index * 53 % 7 < 3).collect();
        let (mut sum, mut pairs) = (0.0, 0.0);
        for (positive, _) in scores.iter().zip(&labels).filter(|(_, label)| **label) {
            for (negative, _) in scores.iter().zip(&labels).filter(|(_, label)| !**label) {
                pairs += 1.0;
                sum += match positive.total_cmp(negative) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                };
            }
        }
        near(auc(&scores, &labels), sum / pairs);
    }
}
