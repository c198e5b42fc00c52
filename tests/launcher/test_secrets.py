"""What is hidden because it looks like a secret, and what is not."""

import json

import pytest

from gluon_launch.job.masking import SECRET, make_mask, mask_words
from launching import launch

TIME_BUDGET_S = 10


def test_a_name_that_only_contains_a_secrets_word_hides_nothing(tmp_path):
    env = {"AUTHOR": "Epoch 12", "MONKEY": "accuracy", "KEYBOARD": "validation"}
    command = "echo Epoch 12 accuracy validation --max-tokens 100"
    job = launch(tmp_path, "-n", 1, "--no-check", "--job-dir", tmp_path / "l", command, env=env)
    assert "[worker 0] Epoch 12 accuracy validation --max-tokens 100" in job.text()
    log = (tmp_path / "l" / "worker-0.log").read_text()
    assert log == "Epoch 12 accuracy validation --max-tokens 100\n"
    assert json.loads((tmp_path / "l" / "job.json").read_text())["command"] == [command]


def test_a_short_value_and_a_word_of_the_command_are_no_secrets(tmp_path):
    env = {"API_KEY": "Epoch", "TOKEN": "resnet18"}
    job = launch(tmp_path, "-n", 1, "--no-check", "echo Epoch of resnet18_v1", env=env)
    assert "[worker 0] Epoch of resnet18_v1" in job.text()


BARE = ("-n", 1, "--env", "TOKEN_X", "--env-worker", "Y=5", "--no-check")


def test_of_a_variable_that_is_given_by_its_name_only_the_name_is_kept(tmp_path):
    job = launch(tmp_path, *BARE, "--job-dir", tmp_path, "echo $TOKEN_X", env={"TOKEN_X": "kB7-x"})
    assert job.text().count("kB7-x") == 3  # in its output it is whatever the program shows
    kept = (tmp_path / "job.json").read_text()
    assert "kB7-x" not in kept
    env = {role: {**env} for role, env in json.loads(kept)["env"].items()}
    assert [env[role]["TOKEN_X"] for role in env] == ["***"] * 3 and env["worker"]["Y"] == "5"


@pytest.mark.parametrize("launcher", ["local", "slurm", "sge"])
def test_a_script_to_read_has_no_value_of_such_a_variable_and_no_password(tmp_path, launcher):
    words = (*BARE, "--launcher", launcher, "--dry-run", "x", "--password", "abc7")
    job = launch(tmp_path, *words, env={"TOKEN_X": "kB7-x"})
    assert job.status == 0 and "TOKEN_X" in job.stdout and "***" in job.stdout
    assert "kB7-x" not in job.text() and "abc7" not in job.text()


@pytest.mark.parametrize("option", ["slurm,--export=ALL,", "sge,-v ", "mpi,-x "])
def test_a_secret_in_an_option_for_the_launcher_is_in_no_script_to_read(tmp_path, option):
    launcher, option = option.split(",", 1)
    words = ("-n", 1, "--launcher", launcher, f"--launcher-option={option}X_TOKEN=abc7")
    job = launch(tmp_path, *words, "--dry-run", "true")
    assert job.status == 0 and "abc7" not in job.text()
    assert "X_TOKEN=***" in job.stdout and "# *** stands for a part" in job.stdout


def test_a_login_in_a_value_is_a_secret(tmp_path):
    url = "DB=postgres://me:pw7@host/x"
    words = ("-n", 1, "--no-check", "--job-dir", tmp_path, "--env", url)
    assert launch(tmp_path, *words, 'test "$DB" = postgres://me:$(echo pw)7@host/x').status == 0
    assert "pw7" not in (tmp_path / "job.json").read_text()
    for launcher in ("local", "slurm", "sge"):
        job = launch(tmp_path, *words[:-2], "--env", url, "--launcher", launcher, "--dry-run", "x")
        assert "DB" in job.text() and "pw7" not in job.text()
        assert job.status == (2 if launcher == "sge" else 0)


NAMES = (
    "TOKEN GITHUB_TOKEN PGPASSWORD DB_PASSWORD2 MYSQL_PWD DB_PASS SSHPASS CLIENT_SECRET APIKEY "
    "AWS_SECRET_ACCESS_KEY WANDB_API_KEY AZURE_CREDENTIALS NPM_AUTH KEY SSH_PASSPHRASE"
)
OTHERS = (
    "PWD OLDPWD AUTHOR XAUTHORITY SSH_AUTH_SOCK MONKEY TURKEY COMPASS GIT_ASKPASS KEY_REPEAT "
    "TOKENIZERS_PARALLELISM MAX_TOKENS"
)


@pytest.mark.parametrize("name", NAMES.split())
def test_a_name_that_ends_as_secrets_do_hides_its_value(name):
    mask = make_mask(["python", "x.py"], {name: "kB7-long-one"})
    assert mask("it is kB7-long-one.") == "it is ***."


@pytest.mark.parametrize("name", OTHERS.split())
def test_a_name_that_does_not_end_so_hides_nothing(name):
    assert not SECRET.search(name)


@pytest.mark.parametrize(
    "words, shown",
    [
        (["x", "--max-tokens", "100"], ["x", "--max-tokens", "100"]),
        (["x --max-tokens 100 --author me"], ["x --max-tokens 100 --author me"]),
        (["echo the token is here"], ["echo the token is here"]),
        (["x", "--password", "abc", "--lr", "1"], ["x", "--password", "***", "--lr", "1"]),
        (["x", "--api-key=abc"], ["x", "--api-key=***"]),
        (["TOKEN=abc x --password 'a b' --lr 1"], ["TOKEN=*** x --password *** --lr 1"]),
        (["x", "https://me:abc@host/"], ["x", "https://me:***@host/"]),
    ],
)
def test_a_command_is_shown_without_its_secrets(words, shown):
    assert mask_words(words) == shown
