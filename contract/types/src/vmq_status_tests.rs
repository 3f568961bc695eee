use super::*;

/// Fails if a published key is renamed.
#[test]
fn keys_are_as_published_and_read_as_they_are_written() {
    let status = VmqStatus {
        uplink: "both".parse().unwrap(),
        config: VmqConfig { base_worker: Some(1), ..VmqConfig::default() },
        workers: vec![VmqWorkerStatus {
            worker: 1,
            permitted: true,
            queues: 1,
            load_ppm: 250_000,
            other_load_ppm: 10_000,
        }],
        queues: vec![VmqQueueStatus {
            queue: "web/rx/0".to_owned(),
            nic: "web".parse().unwrap(),
            is_default_queue: false,
            worker: 1,
            load_ppm: 240_000,
            age_s: 12,
            reason: "first assigned there".to_owned(),
            stay_reason: "the processor is not above 80.0 %".to_owned(),
        }],
    };
    let json = serde_json::to_string_pretty(&status).unwrap();
    assert_eq!(serde_json::from_str::<VmqStatus>(&json).unwrap(), status);
    insta::assert_snapshot!(json);
}
