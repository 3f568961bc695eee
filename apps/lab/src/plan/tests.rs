use super::*;

/// Asserts that `valid` is valid, and that each replacement in it results in an error with the
/// expected text.
fn refuses(valid: &str, cases: &[(&str, &str, &str)]) {
    Plan::parse(valid).unwrap();
    for (from, to, expected) in cases {
        assert!(valid.contains(from), "{from}");
        let error = Plan::parse(&valid.replacen(from, to, 1)).expect_err(to);
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn every_shipped_plan_is_read_and_bears_its_own_name() {
    for (id, text) in SHIPPED_PLANS {
        let plan = Plan::parse(text).unwrap_or_else(|error| panic!("{id}: {error:#}"));
        assert_eq!(plan.header.id, *id);
        let quick = plan.experiment(Scale::Quick).unwrap();
        let seconds: f64 = quick.cases().iter().map(|case| case.seconds).sum();
        let seconds = seconds * f64::from(plan.repetition_policy(Scale::Quick).max);
        assert!(seconds <= 120.0, "{id} is not quick: {seconds} s");
        let ids: std::collections::BTreeSet<_> =
            plan.header.figures.iter().map(|figure| &figure.id).collect();
        assert_eq!(ids.len(), plan.header.figures.len(), "{id}: figures of the same id");
    }
}

#[test]
fn invalid_plans_of_vmq_are_rejected() {
    refuses(
        find_shipped_plan("vmq-teaming").unwrap(),
        &[
            ("kind = \"vmq\"", "", "kind"),
            ("kind = \"vmq\"", "kind = \"vm\"", "vm"),
            ("id = \"vmq-teaming\"", "id = \"../x\"", "id"),
            ("guests = 4", "guests = 0", "guests"),
            ("seconds = 6", "seconds = 1", "phase"),
            ("uplinks", "uplink", "uplink"),
            ("narrow_percent = 5.0", "narrow_percent = 0.0", "narrow_percent"),
            ("/processors-1\"", "/processors-9\"", "processors-9"),
            ("measured = \"switch-independent+hyper-v-port/", "measured = \"", "CASE/MEASURE"),
        ],
    );
}

#[test]
fn invalid_plans_of_web_are_rejected() {
    refuses(
        find_shipped_plan("web").unwrap(),
        &[
            ("vms = [1, 2]", "vms = [0]", "vms"),
            ("vms = [1, 2]", "vms = []", "vms"),
            ("\"std-cgi\", \"min-cgi\"", "\"all-cgi\"", "all-cgi"),
            ("processors = 2", "processors = 0", "processors"),
            ("http_connections = 12", "http_connections = 0", "http_connections"),
            ("file_bytes = 6200", "file_bytes = 100000", "file_bytes"),
            ("seconds = 10", "seconds = 1", "seconds"),
            ("seconds = 10", "minutes = 1", "minutes"),
        ],
    );
}

#[test]
fn invalid_plans_of_qos_are_rejected() {
    refuses(
        find_shipped_plan("qos-host").unwrap(),
        &[
            ("\"VM05\"]", "\"VM01\"]", "twice"),
            ("block_kib = 512", "block_kib = 500", "block_kib"),
            ("disk_mib = 64", "disk_mib = 0", "disk_mib"),
            ("step_s = 20", "step_s = 1", "step_s"),
            ("declared_percent = 100", "declared_percent = 101", "declared_percent"),
            ("{ max_iops = 1000 }", "{ max_iops = 0 }", "max_iops"),
            ("{ max_iops = 1000 }", "{ max_iops = 2, min_iops = 3 }", "min_iops"),
            ("limits = [{ max_iops = 1000 }, {}]", "limits = [{}]", "limits"),
            ("document_iops = 18_000", "document_iops = 16_000", "90 %"),
            ("max_iops = 1000", "most_iops = 1000", "most_iops"),
        ],
    );
    refuses(
        find_shipped_plan("qos-cluster-min").unwrap(),
        &[
            ("is_too_much = true\n", "", "is_too_much"),
            ("limits = [{}, {}]", "limits = [{}, {}]\nis_too_much = true", "is_too_much"),
        ],
    );
}

#[test]
fn invalid_plans_of_tiles_are_rejected() {
    refuses(
        find_shipped_plan("tiles").unwrap(),
        &[
            ("tiles = [1, 2, 3]", "tiles = []", "tiles"),
            ("tiles = [1, 2, 3]", "tiles = [0]", "tiles"),
            ("tiles = [1, 2, 3]", "tiles = [51]", "tiles"),
            ("tiles = [1, 2, 3]", "tiles = [-1]", "tiles"),
            ("vcpus = 1", "vcpus = 0", "vcpus"),
            ("disk_mib = 256", "disk_mib = 1", "disk_mib"),
            ("threads = 4", "threads = 0", "threads"),
            ("tables = 2", "tables = 65", "tables"),
            ("rows = 10_000", "rows = 0", "rows"),
            ("connections = 12", "connections = 0", "connections"),
            ("heap_mib = 256", "heap_mib = 1", "heap_mib"),
            ("warm_up_s = 5", "warm_up_s = 0", "warm_up_s"),
            ("measure_s = 10", "measure_s = 1", "measure_s"),
            ("connections = 12", "connection = 12", "connection"),
            ("tiles.1/score", "tiles.1/points", "points"),
        ],
    );
}

#[test]
fn invalid_plans_of_disk_io_are_rejected() {
    refuses(
        find_shipped_plan("disk-io").unwrap(),
        &[
            ("depths = [1,", "depths = [0,", "depths"),
            ("depths = [1,", "depths = [2,", "depths"),
            ("read_percent = 67", "read_percent = 101", "read_percent"),
            ("block_kib = 8", "block_kib = 3", "block_kib"),
            ("window_ms = 200", "window_ms = 99", "window_ms"),
            ("ways = [", "ways = [] # [", "ways"),
            ("ways = [", "ways = [\"engine\", ", "ways"),
            ("ways = [", "ways = [\"carrier-pigeon\", ", "carrier-pigeon"),
            ("id = \"database\"", "id = \"file-server\"", "an id is listed twice"),
            ("\"raw\"", "\"vhd-fixed\"", "targets"),
            ("\"pass-through\"", "\"floppy\"", "floppy"),
        ],
    );
}

#[test]
fn invalid_plans_of_offload_are_rejected() {
    refuses(
        find_shipped_plan("offload-ftp").unwrap(),
        &[
            ("\"af_packet\", \"af_xdp\"", "\"dpdk\"", "dpdk"),
            ("\"af_packet\", \"af_xdp\"", "", "drivers"),
            ("files = 8", "files = 0", "files"),
            ("file_mib = 128", "file_mib = 2000", "file_mib"),
            ("clients = 32", "clients = 0", "clients"),
            ("warm_up_seconds = 2", "warm_up_seconds = 61", "warm_up_seconds"),
            ("seconds = 10\n", "seconds = 0\n", "seconds"),
            ("clients = 32", "threads = 32", "threads"),
        ],
    );
}

#[test]
fn invalid_plans_of_power_plan_are_rejected() {
    refuses(
        find_shipped_plan("power-plan").unwrap(),
        &[
            ("\"balanced\", ", "", "balanced"),
            ("sessions = 4", "sessions = 0", "sessions"),
            ("window_ms = 2000", "window_ms = 9", "window_ms"),
            ("disk_mib = 64", "disk_gib = 64", "disk_gib"),
        ],
    );
}

#[test]
fn invalid_plans_of_streams_are_rejected() {
    refuses(
        find_shipped_plan("net-vm-to-vm").unwrap(),
        &[
            ("processors = 1", "processors = 17", "processors"),
            ("seconds = 5", "seconds = 1", "seconds"),
            ("broadcast_ms = 100", "broadcast_ms = 1", "broadcast_ms"),
            ("through = \"private\"", "through = \"native\"", "native has no VMs"),
            ("way = \"one-to-one\"", "way = \"one-to-nine\"", "one-to-nine"),
            (
                "through = \"private\", way = \"one-to-one\"",
                "through = \"private\", way = \"out\"",
                "no outside",
            ),
            ("through = \"private\"", "through = \"external\"", "twice"),
            ("blocks = [512", "blocks = [32", "blocks"),
            ("through = \"private\"", "by = \"private\"", "by"),
        ],
    );
}

#[test]
fn invalid_plans_of_sriov_host_cpu_are_rejected() {
    refuses(
        find_shipped_plan("sriov-host-cpu").unwrap(),
        &[("mib = 64", "mib = 0", "mib"), ("mib = 64", "gib = 64", "gib")],
    );
}
