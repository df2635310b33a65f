"""Large data of orders in a bucket, on a server that checks signatures, and in a folder: both do the same."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tools.servers.s3 import ACCESS_KEY, BUCKET, SECRET_KEY

import servers
from api.conftest import client_of, settings_for
from api.test_order_data import LARGE, WIDE, collect
from oraculo.adapters.order_data.folder import FolderOrderData
from oraculo.adapters.order_data.s3 import GRACE, S3OrderData, S3Place, place_of
from oraculo.adapters.order_data.sigv4 import S3Credentials, S3Request, signed_headers
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.sealing.files import UNSEALED
from oraculo.api.app import create_app
from oraculo.errors import SettingsError
from oraculo.ports.data_keys import UnknownDataKeyError
from oraculo.ports.order_data import OrderData
from oraculo.service import Oraculo

NOW = datetime(2026, 11, 18, 12, 30, tzinfo=UTC)
GOOD = S3Credentials(ACCESS_KEY, SECRET_KEY)
DATA = [b"[", b"x" * 3_000_000, b"]"]
DIGEST = sha256(b"".join(DATA)).hexdigest()
Make = Callable[..., OrderData]


def bucket(prefix: str, credentials: S3Credentials = GOOD, sealing: Sealing = UNSEALED, **options: Any) -> S3OrderData:
    place = S3Place(BUCKET, f"{prefix}/")
    return S3OrderData(place, servers.shared("s3"), "us-east-1", credentials, sealing, **options)


@pytest.fixture
def prefix() -> str:
    return secrets.token_hex(8)


@pytest.fixture(params=["folder", "s3"])
def make(request: pytest.FixtureRequest, tmp_path: Path, prefix: str) -> Make:
    """Another view of the same place with every call, as other processes have it."""
    if request.param == "folder":
        return lambda sealing=UNSEALED: FolderOrderData(f"{tmp_path}/data", sealing)
    return lambda sealing=UNSEALED: bucket(prefix, sealing=sealing)


def sealing_of(*tenants: str) -> Sealing:
    sealing = Sealing([bytes(32)])
    sealing.take([sealing.new_key(tenant) for tenant in tenants])
    return sealing


def content(data: OrderData, digest: str = DIGEST) -> bytes | None:
    found = data.open(digest)
    if found is None:
        return None
    with found.file as file:
        raw = file.read()
    assert len(raw) == found.size
    return raw


class TestContract:
    def test_what_was_put_is_found_by_its_digest(self, make: Make) -> None:
        stored = make().put(DATA, NOW, "default")
        assert (stored.digest, stored.size) == (DIGEST, 3_000_002)
        assert content(make()) == b"".join(DATA)
        assert [make().open(name) for name in ("0" * 64, "..", "link.key", "", DIGEST[:-1])] == [None] * 5

    def test_nothing_is_something_too(self, make: Make) -> None:
        stored = make().put([], NOW, "default")
        assert content(make(), stored.digest) == b"" and stored.size == 0

    def test_it_is_kept_until_the_last_of_its_ends_and_an_hour_more(self, make: Make) -> None:
        data = make()
        data.put(DATA, NOW, "default")
        data.put(DATA, NOW + timedelta(hours=5), "default")
        data.put(DATA, NOW + timedelta(hours=1), "default")
        data.sweep(NOW + timedelta(hours=5))
        assert content(data) is not None
        data.sweep(NOW + timedelta(hours=5) + 2 * GRACE + timedelta(minutes=31))
        assert content(data) is None and data.sweep(NOW + timedelta(days=9)) == 0

    def test_the_key_of_links_is_the_same_for_all_and_stays(self, make: Make) -> None:
        keys = {make().link_key() for _ in range(3)}
        assert len(keys) == 1 and len(keys.pop()) == 32
        make().sweep(NOW + timedelta(days=900))
        assert len(make().link_key()) == 32

    def test_sealed_data_open_with_the_key_of_their_tenant_only(self, make: Make) -> None:
        sealing = sealing_of("a")
        make(sealing).put(DATA, NOW, "a")
        assert content(make(sealing)) == b"".join(DATA)
        with pytest.raises(UnknownDataKeyError):
            make(sealing_of("a")).open(DIGEST)


def test_forgetting_the_key_of_one_tenant_leaves_the_same_data_of_another(prefix: str) -> None:
    sealing = sealing_of("a", "b")
    data = bucket(prefix, sealing=sealing)
    data.put(DATA, NOW, "a")
    data.put(DATA, NOW + timedelta(hours=2), "b")
    for tenant, left in (("b", b"".join(DATA)), ("a", None)):
        sealing._keys[sealing.key_id(tenant)] = None
        assert content(data) == left


def test_the_same_is_sent_once(prefix: str) -> None:
    sent: list[str] = []

    class Watched(S3OrderData):
        def _send(self, name: str, file: Any) -> None:
            sent.append(name)
            super()._send(name, file)

    data = Watched(S3Place(BUCKET, f"{prefix}/"), servers.shared("s3"), "us-east-1", GOOD)
    for minutes in (0, 10, 29, -500):
        data.put(DATA, NOW + timedelta(minutes=minutes), "default")
    assert len(sent) == 1
    data.put(DATA, NOW + timedelta(hours=3), "default")
    assert len(sent) == 2


@pytest.mark.parametrize(
    "wrong", [S3Credentials(ACCESS_KEY, "wrong"), S3Credentials("nobody", SECRET_KEY)], ids=["secret", "key"]
)
def test_a_key_that_is_not_right_is_told_and_shows_no_secret(prefix: str, wrong: S3Credentials) -> None:
    with pytest.raises(OSError, match=r"answered 40[34]") as error:
        bucket(prefix, wrong).put(DATA, NOW, "default")
    assert wrong.secret_key not in str(error.value) and SECRET_KEY not in repr(wrong)


def test_a_signature_of_yesterday_is_refused(prefix: str) -> None:
    with pytest.raises(OSError, match="answered 403"):
        bucket(prefix, clock=lambda: datetime.now(UTC).timestamp() - 86_400).link_key()  # noqa: TID251


def test_a_server_that_is_away_is_an_error_of_the_machine() -> None:
    data = S3OrderData(S3Place("b"), "http://127.0.0.1:1", "us-east-1", GOOD)
    for use in (data.link_key, lambda: data.open(DIGEST), lambda: data.put(DATA, NOW, "default")):
        with pytest.raises(OSError, match=r"127\.0\.0\.1:1 cannot be asked"):
            use()


def test_the_signature_of_the_documentation() -> None:
    """GET of an object with a range: the example of Amazon's own reference."""
    keys = S3Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    asked = S3Request("GET", "examplebucket.s3.amazonaws.com", "/test.txt", headers={"Range": "bytes=0-9"})
    signed = signed_headers(asked, keys, "us-east-1", datetime(2013, 5, 24, tzinfo=UTC))
    assert signed["authorization"].endswith(
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


@pytest.mark.parametrize("url", ["s3://", "s3://B", "s3://a", "s3://ok/x?y", "s3://ok/ç", "s3://u:p@ok/x", "s4://ok"])
def test_what_names_no_bucket(url: str) -> None:
    with pytest.raises(ValueError, match="s3://bucket/prefix"):
        place_of(url)


async def test_orders_refer_to_data_in_a_bucket(tmp_path: Path, prefix: str) -> None:
    where = {
        "ORACULO_ORDER_DATA": f"s3://{BUCKET}/{prefix}",
        "ORACULO_ORDER_MAX_BYTES": "4000",
        "ORACULO_S3_ENDPOINT": servers.shared("s3"),
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    settings = settings_for(tmp_path, **where)
    assert SECRET_KEY not in str(settings.shown())
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:
        orders = await collect(client, LARGE)
        assert len(orders) == len(WIDE["execucoes"])
        reference = orders[0]["payload"]["dados_ref"]
        got = await client.get(reference["url"].replace(settings.url, ""))
        assert got.json() == [{"fonte": "youtube", "status": "concluida", "dados": LARGE}]
        assert int(got.headers["content-length"]) == reference["bytes"]


async def test_a_bucket_that_is_away_stops_no_order(tmp_path: Path) -> None:
    where = {"ORACULO_ORDER_DATA": "s3://bucket", "ORACULO_ORDER_MAX_BYTES": "4000"}
    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "ORACULO_S3_ENDPOINT": "http://127.0.0.1:1"}
    settings = settings_for(tmp_path, **where, **keys)
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:
        orders = await collect(client, LARGE)
        assert {order["payload"]["dados"][0]["dados"] for order in orders} == {LARGE}


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({}, "AWS_ACCESS_KEY_ID"),
        ({"AWS_ACCESS_KEY_ID": "x"}, "AWS_SECRET_ACCESS_KEY"),
        ({"ORACULO_ORDER_DATA": "s3://B"}, "ORACULO_ORDER_DATA"),
    ],
)
async def test_what_is_missing_is_named_at_the_start(tmp_path: Path, more: dict[str, str], name: str) -> None:
    settings = settings_for(tmp_path, **{"ORACULO_ORDER_DATA": "s3://bucket", **more})
    with pytest.raises(SettingsError, match=name):
        async with Oraculo(settings):
            pass
