# SPDX-License-Identifier: LGPL-2.1-or-later
"""Manifests of Kubernetes: their rights are those that the program uses, and their words its own.

API(get, patch) in nri/publish.go -> verbs in rbac.yaml
verbs and options in nri/main.go  -> args in daemonset.yaml
"""

import re
from typing import Any

import pytest
from tree import TOP, having

FOLDER = "nri/kubernetes"
MAIN = (TOP / "nri/main.go").read_text()
OPTIONS = re.findall(r'\bflags\.\w+\((?:\w+, )?"([\w-]+)"', MAIN)
DEFAULTS = re.findall(r'flags\.String\("\w+", "(/[^"]+)"', MAIN)
PUBLISH = (TOP / "nri/publish.go").read_text()


def read_text(name: str) -> str:
    """The text of a file."""
    return (TOP / name).read_text()


def read(name: str) -> list[Any]:
    """The documents of a file."""
    import yaml  # not of the standard library: "-k prose" runs without it

    return list(yaml.safe_load_all(read_text(name)))


def objects() -> dict[tuple[str, str], Any]:
    """All objects by kind and name."""
    found = [one for name in having(".yaml", below=(FOLDER,)) for one in read(name)]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def pod() -> Any:
    """The specification of the pods on each node."""
    return objects()["DaemonSet", "sutro-nri"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("name", having(".yaml", ".yml"))
def test_yaml_is_parsed(name: str) -> None:
    documents = read(name)
    assert documents and all(isinstance(one, dict) for one in documents)
    if name.startswith(FOLDER):
        assert all({"apiVersion", "kind", "metadata"} <= one.keys() for one in documents)


def test_rights_are_those_of_the_calls() -> None:
    rules = objects()["ClusterRole", "sutro-nri"]["rules"]
    allowed = {
        (verb, resource)
        for rule in rules
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    assert all(rule["apiGroups"] == [""] for rule in rules)
    assert 'path := "/api/v1/nodes/"' in PUBLISH
    calls = re.findall(r'a\.do\(ctx, http\.Method(\w+), path(?:\+"(/\w+)")?', PUBLISH)
    assert allowed == {(method.lower(), "nodes" + below) for method, below in calls}
    assert PUBLISH.count("http.Method") == len(calls) == 2


def test_the_account_of_the_pods_has_these_rights() -> None:
    found = objects()
    binding = found["ClusterRoleBinding", "sutro-nri"]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "sutro-nri"}
    assert binding["roleRef"] == role
    (subject,) = binding["subjects"]
    account = found["ServiceAccount", subject["name"]]
    assert account["metadata"]["namespace"] == subject["namespace"]
    assert found["DaemonSet", "sutro-nri"]["metadata"]["namespace"] == subject["namespace"]
    assert ("Namespace", subject["namespace"]) in found
    assert pod()["serviceAccountName"] == subject["name"]
    bound = found["ValidatingAdmissionPolicyBinding", "sutro-floors"]["spec"]["policyName"]
    assert ("ValidatingAdmissionPolicy", bound) in found


def test_admission_covers_all_floors() -> None:
    """Each floor of an annotation is compared with its resource, at each change of a pod."""
    policy = objects()["ValidatingAdmissionPolicy", "sutro-floors"]["spec"]
    (rule,) = policy["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE", "UPDATE"]
    condition = policy["matchConditions"][0]["expression"]
    *expressions, place = [one["expression"] for one in policy["validations"]]
    floors = re.findall(r'^\t"([\w-]+)-min": +\{"(\w+)"', read_text("nri/annotation.go"), re.M)
    kinds = re.findall(r'^\t"(\w+)": +\{"([\w-]+)", (\w+)\}', read_text("nri/capacity.go"), re.M)
    assert len(floors) == len(kinds) == len(expressions)
    units = {key: (word, unit) for key, word, unit in kinds}
    for (annotation, key), text in zip(floors, expressions, strict=True):
        word, unit = units[key]
        assert f"k.startsWith('io.sutro/{annotation}-min.')" in condition
        assert f"k.startsWith('io.sutro/{annotation}-min.')" in text
        assert f"r.startsWith('io.sutro/{word}.')" in text
        assert text.count("1000000 * variables.limits") == (unit == "1e6")
    # A path without a floor is compared, too: its container is one of the pod.
    assert "k.startsWith('io.sutro/path.')" in condition
    assert "k.startsWith('io.sutro/path.')" in place and "variables.names" in place
    names = {one["name"]: one["expression"] for one in policy["variables"]}["names"]
    assert {"object.spec.containers", "object.spec.initContainers"} <= set(
        re.findall(r"object\.spec\.\w+", names)
    )


def test_admission_counts_containers_that_run_together() -> None:
    """These are the containers and the sidecars; other init containers end before the pod runs."""
    policy = objects()["ValidatingAdmissionPolicy", "sutro-floors"]["spec"]
    limits = {one["name"]: one["expression"] for one in policy["variables"]}["limits"]
    plain, init = limits.split(" + ")
    assert plain.startswith("object.spec.containers.filter(") and "initContainers" not in plain
    assert init.startswith("(has(object.spec.initContainers) ? object.spec.initContainers.filter(")
    assert "has(c.restartPolicy) && c.restartPolicy == 'Always'" in init
    for part in (plain, init):
        assert "has(c.resources) && has(c.resources.limits)" in part
        assert ".map(c, c.resources.limits)" in part


def test_arguments_are_known() -> None:
    verbs = re.findall(r'^\tcase "(\w+)":', MAIN, re.M)
    assert len(verbs) == 4 and "name" in OPTIONS
    words = [one["args"] for one in pod()["containers"]]
    assert [args[0] for args in words] == ["plugin", "publish"]
    for verb, *rest in words:
        assert verb in verbs
        assert {word for word in rest if word.startswith("-")} <= {f"--{name}" for name in OPTIONS}
    names = [env["name"] for one in pod()["containers"] for env in one.get("env", [])]
    assert names == re.findall(r'os\.Getenv\("(\w+)"\)', MAIN)


def test_files_of_the_program_are_mounted() -> None:
    """Defaults of its options are in a mount of a container; no mount lacks its volume."""
    mounts = [mount for one in pod()["containers"] for mount in one["volumeMounts"]]
    assert {mount["name"] for mount in mounts} == {volume["name"] for volume in pod()["volumes"]}
    folders = tuple(f"{mount['mountPath']}/" for mount in mounts)
    assert len(DEFAULTS) == 4
    assert all(f"{path}/".startswith(folders) for path in DEFAULTS)


def test_usage_and_manual_have_all_options() -> None:
    """The manual also has the default of each."""
    usage = MAIN.partition("usage = `")[2].partition("`")[0]
    page = (TOP / "Documentation/man/sutro-nri.8").read_text().replace("\\-", "-")
    synopsis = page.partition(".SH SYNOPSIS")[2].partition(".SH")[0]
    options = page.partition(".SH OPTIONS")[2].partition(".SH")[0]
    for text in (usage, synopsis, options):
        assert [name for name in OPTIONS if f"--{name}" not in text] == []
    assert [path for path in DEFAULTS if path not in options] == []
