"""Ceph with its S3 gateway, from Debian's packages: one monitor, one storage daemon in memory, one radosgw. It has STS."""

import uuid

from daemons import Account, Daemons, free_ports, program

# Without authentication between the daemons, and with pools of one copy, since there is one storage daemon.
# `rgw dns name` is unset: with one, radosgw takes another Host, such as the gateway's, for the name of a bucket.
CONFIGURATION = """
[global]
fsid = {fsid}
mon initial members = a
mon host = [v2:127.0.0.1:{monitor_port}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
ms bind msgr1 = false
auth cluster required = none
auth service required = none
auth client required = none
run dir = {folder}
admin socket = {folder}/$name.$pid.asok
crash dir = {folder}
log file = {folder}/$name.log
log to stderr = false
err to stderr = true
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
[mon]
mon data = {folder}/mon
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail warn = 2
mon data avail crit = 1
[osd]
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 8589934592
[client]
# radosgw asks for encryption, which needs authentication.
ms mon client mode = crc
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw enable usage log = false
rgw lc debug interval = 10
rgw s3 auth use sts = true
rgw sts key = {sts_key}
rgw sts min session duration = 1
"""
STS_KEY = "key-of-the-tests"


def launch(daemons: Daemons, accounts: list[Account]) -> dict[str, str]:
    """Creates a cluster, and starts it."""
    monitor, osd, rgw, ceph, admin, monmaptool = (
        program(name, None, "ceph")
        for name in ("ceph-mon", "ceph-osd", "radosgw", "ceph", "radosgw-admin", "monmaptool")
    )
    folder, fsid, osd_id = daemons.folder, str(uuid.uuid4()), str(uuid.uuid4())
    monitor_port, port = free_ports(2)
    for name in ("mon", "osd", "rgw"):
        (folder / name).mkdir()
    configuration = folder / "ceph.conf"
    configuration.write_text(
        CONFIGURATION.format(fsid=fsid, folder=folder, monitor_port=monitor_port, port=port, sts_key=STS_KEY)
    )
    use = ["-c", str(configuration)]
    monmap = str(folder / "monmap")
    daemons.run(
        [monmaptool, "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{monitor_port}]", monmap]
    )
    daemons.run([monitor, *use, "-i", "a", "--mkfs", "--monmap", monmap])
    daemons.start("monitor", [monitor, *use, "-i", "a", "-f"])
    daemons.run([ceph, *use, "--connect-timeout", "120", "osd", "new", osd_id])
    daemons.run([osd, *use, "-i", "0", "--mkfs", "--osd-uuid", osd_id, "--no-mon-config"])
    daemons.start("osd", [osd, *use, "-i", "0", "-f"])
    daemons.start("radosgw", [rgw, *use, "-n", "client.rgw.a", "-f"])
    daemons.wait_until_http_answers(f"http://127.0.0.1:{port}/")
    for account in accounts:
        keys = ["--access-key", account.access_key, "--secret", account.secret_key]
        # With this capability an account may create the roles that it assumes.
        user = ["--uid", account.access_key, "--display-name", account.access_key, "--caps", "roles=*"]
        daemons.run([admin, *use, "user", "create", *user, *keys])
    return {"address": f"127.0.0.1:{port}", "version": daemons.run([rgw, "--version"]).split()[2]}
