from pathlib import Path

from daws.data.folders import remove_tree


def test_a_folder_goes_with_everything_in_it_and_nothing_that_it_points_to(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    folder = tmp_path / "folder"
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "deep" / "file").write_text("x")
    (folder / "link").symlink_to(outside)
    remove_tree(str(folder))
    assert not folder.exists()
    assert (outside / "kept").exists()


def test_what_is_not_there_is_no_error(tmp_path: Path):
    remove_tree(str(tmp_path / "nothing"))
