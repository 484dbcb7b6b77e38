"""The code on the page of ``exactk report`` gives the features of the command, whatever it asks."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Nothing but the choice itself.
QUICK = ["--samples", "0", "--permutations", "0", "--methods", "none", "--certify", "0"]
# Columns that are no features, unless a command names them; of those, colour is one.
OTHERS = ("kind", "flag", "amount", "counts", "w", "site", "plot", "colour")
GROUPS = {"pair": ["f1", "f2"], "three": ["f5", "f6", "f7"]}
ODD = ["it's", 'a "b"', " c ", "tab\\t", "é,ü", "two\nlines", "中文", "{0}%s", "#nan"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same rows in files of every kind, and tables that are odd."""
    here = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(7)
    n = 90
    X = rng.normal(size=(n, 9))
    X[:, 1] = X[:, 0] + 0.4 * rng.normal(size=n)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(9)])
    frame["f8"] = -2 * frame["f3"]  # a copy: which of the two comes first is chosen
    noise = rng.normal(size=(n, 3))
    frame["kind"] = np.array(["u", "v", "w"])[np.argmax(X[:, :3] + X[:, 4:7] + noise, axis=1)]
    frame["flag"] = (X[:, 4] + X[:, 6] + X[:, 3] + noise[:, 0] > 1).astype(int)
    frame["colour"] = rng.choice(["red", "blue", "green"], n)
    red = frame["colour"] == "red"
    frame["amount"] = X @ rng.normal(size=9) + noise[:, 1] + 3 * red
    frame["counts"] = rng.poisson(np.exp(0.5 * X[:, 3] + 0.4 * X[:, 5]))
    frame["w"] = rng.integers(0, 4, n)
    frame["site"] = rng.choice(list("PQRSTUV"), n)
    frame["plot"] = rng.integers(0, 6, n)
    frame.to_csv(here / "t.csv", index=False)
    frame.to_csv(here / "t.csv.gz", index=False)
    frame.to_csv(here / "t.tsv", index=False, sep="\t")
    frame.to_parquet(here / "t.parquet")
    frame.to_feather(here / "t.feather")
    frame.to_feather(here / "t.ipc")
    frame.to_csv(here / "unnamed.csv")
    for part, rows in (("a", slice(40)), ("b", slice(40, None))):
        (here / "parts" / f"year={part == 'b':d}").mkdir(parents=True)
        frame[rows].to_parquet(here / "parts" / f"year={part == 'b':d}" / f"{part}.parquet")
    odd = frame[[f"f{j}" for j in range(9)]].set_axis(ODD, axis=1)
    odd['what\'s "y"?'] = frame["amount"]
    odd.to_csv(here / 'it\'s "odd".csv', index=False)
    frame[["f0", "f1", "f2", "f3", "w", "site", "amount"]].set_index(
        ["site", "f2", "w"]
    ).to_parquet(here / "index.parquet")
    numbers = frame[["f0", "f1", "f2", "flag"]].set_axis(range(4), axis=1)
    numbers.to_parquet(here / "numbers.parquet")
    frame[["f0", "f1", "amount"]].set_axis(["f0", "f1", "y"], axis=1).set_index(
        pd.Index(frame["f4"] + frame["f5"], name=None)
    ).to_parquet(here / "nameless.parquet")
    coded = pa.table(
        {
            "level": pa.array(frame["counts"] % 5).dictionary_encode(),
            "price": pa.array(frame["f1"].round(2).tolist()).cast(pa.decimal128(9, 2)),
            "f2": frame["f2"],
            "f3": frame["f3"],
            "y": pa.array(frame["counts"] % 5 + frame["f1"] + frame["f2"] + frame["f3"]),
        }
    )
    pq.write_table(coded, here / "coded.parquet")
    prices = pd.DataFrame({"name": [f"f{j}" for j in range(9)], "cost": range(1, 10)})
    prices.to_csv(here / "costs.csv", index=False)
    return here


TABLES = ("t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.feather", "t.ipc", "parts")
EVERYWHERE = {
    "size": "kind -k 3",
    "poisson": "counts -k 2 --loss poisson --effort 0",
    "weights and groups": "kind --weights w --groups site --k-max 4 --effort 0",
}
COMMANDS = {
    f"{name}: {table}": f"{table} --target {words}"
    for name, words in EVERYWHERE.items()
    for table in (TABLES if name == "size" else ("t.csv", "parts"))
} | {
    "auto": "t.csv --target amount",
    "auto of parts": "parts --target kind -k auto --k-max 5 --folds 3 --rule paired --seed 5",
    "best": "t.csv --target kind --k-max 5 --folds 4 --rule best --seed 2",
    "bic": "t.csv --target amount --criterion bic --k-max 6",
    "ebic of parts": "parts --target flag --criterion ebic --rule best",
    "folds beside a criterion": "t.csv --target amount --criterion aicc --folds 3 --seed 1",
    "the same of parts": "parts --target amount --criterion aicc --folds 3 --groups plot",
    "pattern": "'parts/*/*.parquet' --target kind -k 2",
    "regression": "t.csv --target flag -k 3 --task regression",
    "classification": "t.csv --target counts -k 3 --task classification",
    "regression of parts": "parts --target flag -k 3 --task regression",
    "huber": "t.csv --target amount -k 3 --loss huber:epsilon=2.5",
    "l21 of parts": "parts --target kind -k 3 --loss l21",
    "l2r": "t.csv --target amount -k 2 --loss l2r:r=0.5",
    "logistic": "t.csv --target flag -k 2 --loss logistic --weights w",
    "poisson by groups": "t.csv --target counts --k-max 3 --loss poisson --groups site --effort 0",
    "optimal scoring": "parts --target kind -k 3 --loss optimal_scoring",
    "class weights": "t.csv --target kind -k 3 --class-weight balanced",
    "class weights of parts": "parts --target flag -k 3 --class-weight balanced --weights w",
    "class weights and groups":
        "t.csv --target kind --class-weight balanced --weights w --groups plot --k-max 3",
    "weights": "t.csv --target amount -k 4 --weights w --ridge 0.5",
    "weights of parts": "parts --target amount -k 4 --weights w --ridge cv --seed 3",
    "groups and a size": "parts --target amount -k 3 --groups site --weights w",
    "groups that are dropped": "t.csv --target kind --groups site --drop site --k-max 3",
    "text": "t.csv --target amount -k 3 +colour",
    "text and groups": "t.parquet --target amount --k-max 4 +colour --groups plot --weights w",
    "text always in": "t.tsv --target kind -k 3 +colour --include colour",
    "columns": "t.csv --target kind -k 2 --columns f8,f3,f7,f5",
    "columns of parts": "parts --target flag --k-max 2 --columns f8,f3,f7,f5 --groups site",
    "rules": "t.csv --target amount -k 4 --include f7 --exclude f0 --max-correlation 0.8",
    "rules of parts": "parts --target kind -k 4 --include f7 --exclude f0 --max-correlation 0.8",
    "columns together": "t.csv --target amount -k 3 --group pair=f1,f2 --group three=f5,f6,f7",
    "the same by columns":
        "parts --target kind -k 4 --group pair=f1,f2 --group three=f5,f6,f7 --count columns",
    "families": "t.csv --target amount -k 4 --family a=f0,f1,f2 --family b=f3,f4,f5 --at-most 1 "
        "--at-least b=1",
    "budget": "t.csv --target amount -k 3 --costs costs.csv --budget 12",
    "budget of parts": "parts --target amount -k 3 --costs costs.csv --budget 12 --drop year",
    "gsrfs": "t.csv --target kind -k 3 --method gsrfs -O lam=0.1",
    "greedy": "parts --target kind -k 3 --method greedy --seed 3",
    "fisher": "t.csv --target kind --method fisher --k-max 4 --seed 1",
    "relieff": "parts --target kind -k 3 --method relieff",
    "options": "t.csv --target amount -k 3 -O effort=0.5 -O random_state=4",
    "options and auto": "parts --target amount -O effort=0 -O random_state=4 --k-max 4",
    "options called as others": "t.csv --target kind -k 3 --method covth -O rule=soft",
    "proof": "t.csv --target amount -k 7 --method greedy --certify inf",
    "proof of parts":
        "parts --target flag -k 7 --method greedy --certify 60 --weights w --drop year",
    "labels": "t.csv --target kind -k 3 --classes w,v,u",
    "labels that are numbers": "t.csv --target flag -k 3 --classes 0,1",
    "one more label": "parts --target kind -k 3 --classes u,v,w,z",
    "labels of another kind": "t.csv --target flag -k 3 --classes 0,1,unknown",
    "labels and groups": "t.csv --target flag --classes 0,1 --weights w --groups site --k-max 3",
    "memory": "parts --target kind -k 3 --memory-limit 1000000",
    "no name": "unnamed.csv --target amount -k 3 --drop ''",
    "odd names": "'it'\"'\"'s \"odd\".csv' --target 'what'\"'\"'s \"y\"?' -k 6",
    "index": "index.parquet --target amount -k 2",
    "index dropped": "index.parquet --target amount -k 2 --drop f2",
    "index as target": "index.parquet --target f2 -k 2 --weights w",
    "index as feature": "index.parquet --target amount -k 2 --columns f2,f3,f0 --groups site",
    "index among columns": "index.parquet --target amount -k 2 --columns f2,f3,f0",
    "index without a name": "nameless.parquet --target __index_level_0__ -k 1",
    "numbers for names": "numbers.parquet --target 3 -k 2 --drop 1",
    "numbers that are encoded": "coded.parquet --target y -k 3",
    "moments": "--from-moments kind.npz -k 3",
    "moments dropped": "--from-moments kind.npz -k 3 --drop f1 --drop f6",
    "columns of moments": "--from-moments amount.npz -k 2 --columns f8,f3,f1,f7",
    "columns of moments dropped":
        "--from-moments amount.npz --criterion bic --columns f8,f3,f1,f7 --drop f3",
}  # fmt: skip


@pytest.fixture(scope="module")
def moments(tables):
    from exactk.cli import main

    for target in ("kind", "amount"):
        words = f"t.csv --target {target} -o {tables / target}.npz"
        with pytest.raises(SystemExit) as stop:
            main(["stats", "build", *asked(words.replace("t.csv", str(tables / "t.csv")))])
        assert stop.value.code == 0


def asked(command):
    """The words of a command, and --drop for the columns that it does not name."""
    words = shlex.split(command)
    if not words[0].endswith(TABLES) and words[0] not in ("parts/*/*.parquet", "unnamed.csv"):
        return words
    if "--columns" in words:
        return words
    unnamed = [name for name in OTHERS if name not in words and f"+{name}" not in words]
    dropped = [word for name in unnamed for word in ("--drop", name)]
    return [*(word for word in words if not word.startswith("+")), *dropped]


def columns(names):
    """What stands for columns that enter together, taken apart."""
    return sorted(column for name in names for column in GROUPS.get(name, [name]))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_code_gives_the_features_of_the_command(
    run, tables, moments, name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tables)
    place = ["--quiet", "-o", tmp_path / "page.html", "--record", tmp_path / "record.json"]
    words = asked(COMMANDS[name])
    # The last of what is given twice counts; sizes beyond the one asked for take time.
    sizes = ["--k-max", words[words.index("-k") + 1]] if {"-k", "auto"} & {*words} == {"-k"} else []
    done = run("report", *QUICK, *sizes, *words, *place)
    assert (done.code, done.err) == (0, "")
    record = json.loads((tmp_path / "record.json").read_text("utf-8"))
    printed: list[str] = []
    code = record["settings"]["code"]
    exec(compile(code, "page", "exec"), {"print": lambda *names, sep: printed.extend(names)})
    chosen = record["selection"]["selected"]
    if "--group" in words:
        assert columns(printed) == columns(chosen), code
    else:
        assert printed == chosen, code
    if name.startswith("proof"):
        assert record["certificate"]["improved"] is True
