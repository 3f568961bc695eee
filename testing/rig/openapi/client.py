"""Uses a client that openapi-generator made of the OpenAPI document.

SUIMON_URL, SUIMON_TOKEN and SUIMON_CA name the daemon under test, SUIMON_STORE a directory for
disks. The package `suimon_api` is the generated client.
"""

import os

import suimon_api
from suimon_api.models import (
    ApplyConfig,
    ApplyRequest,
    DiskConfig,
    DiskConfigSizeBytes,
    DiskFormat,
    HostConfig,
    NicBackend,
    NicConfig,
    NicConfigPatch,
    OperationState,
    StoreConfig,
    SwitchConfig,
    SwitchKind,
)

configuration = suimon_api.Configuration(
    host=os.environ["SUIMON_URL"],
    access_token=os.environ["SUIMON_TOKEN"],
    ssl_ca_cert=os.environ["SUIMON_CA"],
)
client = suimon_api.ApiClient(configuration)
operations = suimon_api.OperationsApi(client)
host = suimon_api.HostApi(client)
switches = suimon_api.SwitchesApi(client)
nics = suimon_api.NicsApi(client)
stores = suimon_api.StoresApi(client)
disks = suimon_api.DisksApi(client)


def finish(operation):
    """Waits until an operation has succeeded."""
    ended = operations.wait_operation(operation.id, timeout_s=120)
    assert ended.state == OperationState.SUCCEEDED, ended
    return ended


def refused(status, call):
    """Calls, which must fail with this status, and returns the errors."""
    try:
        call()
    except suimon_api.ApiException as error:
        assert error.status == status, error
        return error.data.errors
    raise AssertionError(f"accepted instead of {status}")


def main():
    assert host.show_host().switches == 0

    # Each resource with its own operations.
    lan = SwitchConfig(name="lan", kind=SwitchKind.PRIVATE)
    plan = switches.add_switch(lan, dry_run=True)
    assert plan.steps[0].resource == "switch/lan", plan
    finish(switches.add_switch(lan))
    assert switches.show_switch("lan").config.name == "lan"
    nic = NicConfig(name="web", switch="lan", backend=NicBackend.TAP, vlan=7)
    added = finish(nics.add_nic(nic))
    assert added.plan.steps[0].resource == "nic/web", added
    changed = finish(nics.change_nic("web", NicConfigPatch(vlan=20)))
    change = changed.plan.steps[0].changes[0]
    assert (change.var_field, change.var_from, change.to) == ("vlan", 7, 20), change
    assert host.export_config().nic[0].vlan == 20

    store = StoreConfig(name="ssd", path=os.environ["SUIMON_STORE"])
    finish(stores.add_store(store))
    size = DiskConfigSizeBytes("64 MiB")
    disk = DiskConfig(name="web", store="ssd", format=DiskFormat.VHDX, size_bytes=size)
    finish(disks.add_disk(disk))
    assert disks.show_disk("web").config.name == "web"

    # Errors are typed, and the client validates requests against the document before sending.
    errors = refused(404, lambda: nics.show_nic("none"))
    assert errors[0].code == "not_found", errors
    away = NicConfig(name="away", switch="nowhere", backend=NicBackend.TAP)
    errors = refused(422, lambda: nics.add_nic(away))
    assert (errors[0].code, errors[0].var_field) == ("unknown_reference", "switch"), errors
    for wrong in ({"vlan": 4095}, {"mtu": 67}, {"mac": "53:54:00:12:34:56"}):
        try:
            NicConfig(name="x", switch="lan", backend=NicBackend.TAP, **wrong)
        except ValueError:
            continue
        raise AssertionError(f"the client takes {wrong}")

    # The whole configuration in one request.
    finish(disks.delete_disk("web", with_file=True))
    nothing = ApplyRequest(ApplyConfig(config=HostConfig(switch=[lan])))
    finish(host.apply_host(nothing))
    assert nics.list_nics() == []
    assert [switch.config.name for switch in switches.list_switches()] == ["lan"]
    print("the generated client works")


main()
