use super::*;

fn usage_error(args: &[&str]) -> String {
    let args = core::iter::once("suimon").chain(args.iter().copied());
    match parse_from(args) {
        Ok(cli) => panic!("accepted: {cli:?}"),
        Err(error) => {
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        }
    }
}

fn read(args: &[&str]) -> Cli {
    parse_from(core::iter::once("suimon").chain(args.iter().copied())).unwrap()
}

#[test]
fn the_definition_is_sound() {
    command_with_aliases().debug_assert();
}

#[test]
fn help_is_as_reviewed() {
    let mut command = command().term_width(100);
    command.build();
    insta::assert_snapshot!("help", command.render_long_help().to_string());
    let nic = command.find_subcommand_mut("nic").unwrap();
    for verb in ["add", "set", "capture"] {
        let verb_help = nic.find_subcommand_mut(verb).unwrap().render_help().to_string();
        insta::assert_snapshot!(format!("help_nic_{verb}"), verb_help);
    }
    let offload = command.find_subcommand_mut("offload").unwrap();
    let set_help = offload.find_subcommand_mut("set").unwrap().render_help().to_string();
    insta::assert_snapshot!("help_offload_set", set_help);
    let team = command.find_subcommand_mut("team").unwrap();
    let add_help = team.find_subcommand_mut("add").unwrap().render_help().to_string();
    insta::assert_snapshot!("help_team_add", add_help);
    let vmq = command.find_subcommand_mut("vmq").unwrap();
    let set_help = vmq.find_subcommand_mut("set").unwrap().render_help().to_string();
    insta::assert_snapshot!("help_vmq_set", set_help);
    let disk = command.find_subcommand_mut("disk").unwrap();
    for verb in ["add", "delete", "export", "resize", "convert"] {
        let verb_help = disk.find_subcommand_mut(verb).unwrap().render_help().to_string();
        insta::assert_snapshot!(format!("help_disk_{verb}"), verb_help);
    }
    let qos = command.find_subcommand_mut("qos").unwrap();
    insta::assert_snapshot!("help_qos", qos.render_help().to_string());
    let set_help = qos.find_subcommand_mut("set").unwrap().render_help().to_string();
    insta::assert_snapshot!("help_qos_set", set_help);
    let what_if = qos.find_subcommand_mut("what-if").unwrap().render_help().to_string();
    insta::assert_snapshot!("help_qos_what_if", what_if);
}

#[test]
fn the_socket_may_precede_the_noun_or_follow_the_verb() {
    assert_eq!(read(&["--socket", "/a", "nic", "list"]).socket, PathBuf::from("/a"));
    assert_eq!(read(&["nic", "list", "--socket", "/b"]).socket, PathBuf::from("/b"));
    assert_eq!(read(&["top", "--socket=/c", "--json"]).socket, PathBuf::from("/c"));
    assert!(read(&["nic", "list", "--json"]).json);
    assert!(read(&["--json", "nic", "list"]).json);
    let vm = ["--socket", "/d", "nic", "add", "a", "--switch", "s", "--backend", "vhost-user"];
    let cli = read(&[&vm[..], &["--socket", "/run/vm.sock"]].concat());
    assert_eq!(cli.socket, PathBuf::from("/d"));
    assert!(format!("{:?}", cli.noun).contains("/run/vm.sock"));
}

#[test]
fn metrics_does_not_list_the_flag_that_it_rejects() {
    let mut command = command();
    command.build();
    let mut help = |path: &[&str]| {
        let subcommand = path
            .iter()
            .fold(&mut command, |parent, name| parent.find_subcommand_mut(name).unwrap());
        subcommand.render_long_help().to_string()
    };
    assert!(!help(&["metrics"]).contains("--json"));
    assert!(help(&["export"]).contains("--json"));
    for arguments in [["metrics", "--json"], ["--json", "metrics"]] {
        assert!(read(&arguments).json, "the command rejects it with an explanation");
    }
}

#[test]
fn flags_accept_values_as_in_host_files_and_settings() {
    for (value, other) in [("true", "on"), ("false", "off")] {
        let parsed = |value: &str| {
            format!("{:?}", read(&["nic", "set", "a", &format!("--isolated={value}")]).noun)
        };
        assert_eq!(parsed(value), parsed(other));
        let parsed = |value: &str| {
            format!("{:?}", read(&["offload", "set", "a", &format!("segmentation={value}")]).noun)
        };
        assert_eq!(parsed(value), parsed(other));
    }
    usage_error(&["nic", "set", "a", "--isolated=yes"]);
}

#[test]
fn invalid_arguments_are_rejected_before_any_request() {
    assert!(usage_error(&["nic", "add", "web"]).contains("--switch"));
    let message = usage_error(&["nic", "set", "web", "--vlan", "4095"]);
    assert!(message.contains("must be a number from 1 to 4094"), "{message}");
    assert!(
        usage_error(&["nic", "set", "web", "--mac", "ff:ff:ff:ff:ff:ff"]).contains("not a group")
    );
    assert!(usage_error(&["nic", "set", "web", "--backend", "tapp"]).contains("'tap'"));
    assert!(usage_error(&["nic", "set", "web", "--unset", "switch"]).contains("switch"));
    assert!(usage_error(&["nic", "show", "../etc"]).contains("not a valid name"));
    assert!(usage_error(&["queue", "move", "web", "--to", "1"]).contains("web/rx/0"));
    assert!(usage_error(&["top", "--interval", "5"]).contains("100"));
    assert!(usage_error(&["apply"]).contains("--file"));
    assert!(usage_error(&["team", "add", "both", "--mode", "static"]).contains("--members"));
    let message = usage_error(&["team", "set", "both", "--algorithm", "random"]);
    assert!(message.contains("transport-ports"), "{message}");
    let message = usage_error(&["team", "set", "both", "--lacp-system-priority", "65536"]);
    assert!(message.contains("must be a whole number from 0 to 65535"), "{message}");
    assert!(usage_error(&["team", "set", "both", "--unset", "members"]).contains("members"));
    assert!(usage_error(&["vmq", "explain"]).contains("NIC"));
    usage_error(&["nic", "delete", "a", "--dry-run", "--no-wait"]);
    assert!(usage_error(&["disk", "add", "web", "--format", "raw"]).contains("--store"));
    let message = usage_error(&["disk", "set", "web", "--size-bytes", "10 GB"]);
    assert!(message.contains("a number of bytes or like \"10 GiB\""), "{message}");
    assert!(usage_error(&["disk", "resize", "web", "big"]).contains("`big` is not a size"));
    let message = usage_error(&["disk", "convert", "web", "../x", "--format", "vhd"]);
    assert!(message.contains("not a valid file name in a store"), "{message}");
    usage_error(&["disk", "convert", "web", "x", "--format", "pass-through"]);
    usage_error(&["qos", "flows", "--interval", "1000"]);
    // Flags without a meaning for the command do not exist.
    usage_error(&["nic", "delete", "web", "--with-file"]);
    usage_error(&["nic", "set", "web", "--vlan", "1", "--create-image"]);
    usage_error(&["disk", "add", "web", "--store", "fast", "--format", "raw", "--create-image"]);
    usage_error(&["nic", "set", "web", "--vlan", "1", "--force"]);
    usage_error(&["disk", "delete", "web", "--force"]);
}

/// `suimon export >FILE` would empty the file.
#[tokio::test]
async fn an_export_that_fails_leaves_its_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("host.toml"), folder.path().join("no.sock"));
    std::fs::write(&file, "former").unwrap();
    let [file_name, socket] = [&file, &socket].map(|path| path.to_str().unwrap());
    for extra in [&["--json"][..], &[]] {
        let arguments = ["--socket", socket, "export", "--output", file_name];
        let failure = read(&[&arguments, extra].concat()).run().await.unwrap_err();
        assert_eq!(failure.exit_code(), 5);
        assert_eq!(std::fs::read(&file).unwrap(), b"former");
    }
}
