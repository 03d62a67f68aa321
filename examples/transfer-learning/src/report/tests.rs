//! The text of a report.

use pushdown_client::store::Objects;

use super::*;

fn cost(stages: &[(u8, u64)], cache_hits: u64) -> ReadCost {
    ReadCost {
        mode: "auto",
        samples: 400,
        seconds: 6.54,
        cpu_seconds: 5.9,
        gateway_cpu_seconds: Some(0.31),
        peak_bytes: Some(80 << 20),
        received_bytes: 13_760_000,
        sent_bytes: 270_000,
        stored_bytes: 13_700_000,
        cache_hits,
        plan: None,
        stages: stages.iter().copied().collect(),
        steps: vec!["decode".to_owned(), "model until r1".to_owned()],
    }
}

#[test]
fn the_text_of_a_report() {
    let data = Dataset {
        objects: Objects::from_keys("b", ["a", "b", "c", "d", "e", "f", "g", "h"]),
        labels: vec![true, false, true, false, true, false, true, false],
        train: 4,
    };
    let mut part = ReportPart::new("one epoch".to_owned(), "decode | model(net, until=r1)");
    part.push(
        &data,
        ReportLine::new("plain", cost(&[(0, 400)], 0), 0.4),
        &[1.0, -1.0, 2.0, 1.5],
    );
    let plan = "plan: 61 samples/s (plain reading: 26), limited by the link\n  link 8 Mbit/s, 1.0 cores at the gateway, 2.0 on \
                this host\n  larger objects: 25 % plain, 75 % up to `model` (stage 2)\n";
    let planned = ReadCost {
        plan: Some(plan.to_owned()),
        ..cost(&[(0, 100), (2, 300)], 0)
    };
    part.push(
        &data,
        ReportLine::new("auto", planned, 0.4),
        &[1.0, -1.0, -2.0, 1.5],
    );
    let cached = ReadCost {
        gateway_cpu_seconds: None,
        received_bytes: 0,
        ..cost(&[(2, 400)], 400)
    };
    part.push(
        &data,
        ReportLine::new("cached, again", cached, 0.4),
        &[1.0, -1.0, 2.0, 1.5],
    );
    insta::assert_snapshot!(Report::new(&data, vec![part]));
}
