"""Storage for Cinder that stores nothing: every operation succeeds."""

from cinder.volume import driver


class Storage(driver.VolumeDriver):
    VERSION = "1"

    def nothing(self, *args, **kwargs):
        pass

    do_setup = check_for_setup_error = create_volume = delete_volume = extend_volume = nothing
    ensure_export = create_export = remove_export = terminate_connection = nothing

    def clone_image(self, *args, **kwargs):
        return {}, True

    def initialize_connection(self, volume, connector, **kwargs):
        return {"driver_volume_type": "fake", "data": {"volume_id": volume.id}}

    def get_volume_stats(self, refresh=False):
        return {"volume_backend_name": "pretended", "vendor_name": "none", "driver_version": self.VERSION, "storage_protocol": "fake",
                "total_capacity_gb": "infinite", "free_capacity_gb": "infinite", "reserved_percentage": 0}
