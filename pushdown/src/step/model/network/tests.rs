use std::{sync::mpsc, thread, time::Duration};

use super::*;

#[derive(Debug)]
struct Nowhere;

impl Weights for Nowhere {
    fn fetch(&self) -> Result<Bytes> {
        Err(Error::model("nowhere"))
    }

    fn runtime(&self) -> Result<Runtime> {
        Err(Error::runtime("none"))
    }
}

fn good() -> serde_json::Value {
    serde_json::json!({
        "name": "n", "digest": "0".repeat(64), "bytes": 1, "left_out": [], "batched": true, "working_bytes": 0,
        "inputs": [{"tensor": "x", "shape": [3, 8, 8]}], "outputs": [],
        "cut_points": [{"tensor": "y", "shape": [4], "bytes": 16, "parameters": 0, "macs": 0}],
    })
}

/// A list of networks may come from anyone.
#[test]
fn descriptions_that_no_network_has() {
    let good = good();
    let fault = |field: &str, value: serde_json::Value| {
        let mut description = good.clone();
        description[field] = value;
        let description = serde_json::from_value(description).expect(field);
        Network::described(description, Nowhere)
            .expect_err(field)
            .to_string()
    };
    assert!(Network::described(serde_json::from_value(good.clone()).expect("good"), Nowhere).is_ok());
    assert!(fault("digest", "../../secret".into()).contains("64 hex digits"));
    assert!(fault("cut_points", serde_json::json!([])).contains("0 cut points"));
    let huge = serde_json::json!([{"tensor": "x", "shape": [1_u64 << 40, 1_u64 << 40]}]);
    assert!(fault("inputs", huge).contains("more than any value may have"));
}

/// A network of which the weights come when they are told to.
#[derive(Debug)]
struct Slow {
    asked: mpsc::Sender<()>,
    come: Mutex<mpsc::Receiver<()>>,
}

impl Weights for Slow {
    fn fetch(&self) -> Result<Bytes> {
        let told = self.asked.send(()).is_ok() && self.come.lock().recv().is_ok();
        Err(Error::model(if told { "they are lost" } else { "nobody waits" }))
    }

    fn is_near(&self) -> bool {
        false
    }

    fn runtime(&self) -> Result<Runtime> {
        Err(Error::runtime("none"))
    }
}

/// It may be the thread that they come by.
#[test]
fn nobody_waits_for_weights_who_only_asks_whether_they_are_here() {
    let ((asked, was_asked), (send, come)) = (mpsc::channel(), mpsc::channel());
    let come = Mutex::new(come);
    let description = serde_json::from_value(good()).expect("good");
    let network = Network::described(description, Slow { asked, come }).expect("good");
    let network = Arc::new(network);
    let loading = thread::spawn({
        let network = Arc::clone(&network);
        move || network.load()
    });
    was_asked.recv().expect("weights are asked for");
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        network.release();
        answer.send((network.is_loaded(), network.is_near(), network.held_bytes()))
    });
    let answered = answered.recv_timeout(Duration::from_secs(30));
    assert_eq!(answered, Ok((false, false, 0)));
    send.send(()).expect("somebody waits");
    let error = loading.join().expect("no panic").expect_err("no weights");
    assert!(error.to_string().contains("they are lost"), "{error}");
}
