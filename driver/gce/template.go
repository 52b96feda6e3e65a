package gce

import (
	"slices"

	"google.golang.org/api/compute/v1"

	"drover"
	"drover/driver/kit"
)

// readTemplate reads a raw template, in the words of the API's Instance.
func readTemplate(raw string) (*compute.Instance, error) {
	made := &compute.Instance{}
	hint := `it is JSON, with the keys of Instance in the Compute Engine API, such as {"minCpuPlatform": "Intel Ice Lake"}`
	if err := kit.DecodeTemplate(raw, made, hint); err != nil {
		return nil, err
	}
	if made.Name != "" || made.MachineType != "" || slices.ContainsFunc(made.Disks, func(d *compute.AttachedDisk) bool { return d != nil && d.Boot }) ||
		made.Scheduling != nil && (made.Scheduling.ProvisioningModel != "" || made.Scheduling.Preemptible) {
		return nil, drover.Errorf(drover.KindInvalid, "the template says name, machineType, a boot disk or provisioningModel, which Drover gives for each instance").
			WithHint("use image, disk and disk_type of the cloud, and let Drover choose types and markets")
	}
	return made, nil
}

// mergedItems are both; of a key in both, the second's.
func mergedItems(first *compute.Metadata, second []*compute.MetadataItems) *compute.Metadata {
	all := &compute.Metadata{Items: second}
	if first == nil {
		return all
	}
	for _, i := range first.Items {
		if i != nil && !slices.ContainsFunc(second, func(own *compute.MetadataItems) bool { return own.Key == i.Key }) {
			all.Items = append(all.Items, i)
		}
	}
	return all
}
