use super::*;

/// `good` is read, and what a replacement makes of it is refused with words that name what is
/// wrong.
fn refuses(good: &str, cases: &[(&str, &str, &str)]) {
    Plan::parse(good).unwrap();
    for (from, to, expected) in cases {
        assert!(good.contains(from), "{from}");
        let error = Plan::parse(&good.replacen(from, to, 1)).expect_err(to);
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn every_shipped_plan_is_read_and_bears_its_own_name() {
    for (id, text) in SHIPPED {
        let plan = Plan::parse(text).unwrap_or_else(|error| panic!("{id}: {error:#}"));
        assert_eq!(plan.head.id, *id);
        let quick = plan.experiment(Scale::Quick).unwrap();
        let seconds: f64 = quick.cases().iter().map(|case| case.seconds).sum();
        let seconds = seconds * f64::from(plan.repeat(Scale::Quick).most);
        assert!(seconds <= 120.0, "{id} is not quick: {seconds} s");
        let ids: std::collections::BTreeSet<_> =
            plan.head.figures.iter().map(|of| &of.id).collect();
        assert_eq!(ids.len(), plan.head.figures.len(), "{id}: figures of the same id");
    }
}

#[test]
fn plans_of_vmq_that_make_no_sense_are_refused() {
    refuses(
        shipped("vmq-teaming").unwrap(),
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
fn plans_of_web_that_make_no_sense_are_refused() {
    refuses(
        shipped("web").unwrap(),
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
fn plans_of_tiles_that_make_no_sense_are_refused() {
    refuses(
        shipped("tiles").unwrap(),
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
fn plans_of_offload_that_make_no_sense_are_refused() {
    refuses(
        shipped("offload-ftp").unwrap(),
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
fn plans_of_streams_that_make_no_sense_are_refused() {
    refuses(
        shipped("net-vm-to-vm").unwrap(),
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
